import { defineConfig, type Plugin, type ViteUserConfig } from "vitest/config"
import base from "../../../vitest.config.ts"
import { inOrder } from "../in-order.ts"
import { readTask } from "./task.ts"

// Runs the tests of one room on its instrumented sources, in one process. MUTATION_TASK names the file with the task.
const { tests, files, needsRedis, timeoutMs } = readTask()
const codeOf = new Map(files.map(({ path, code }) => [path, code]))

/** Replaces the code of each file when a test loads the file, so no files are copied or left behind. */
const instrumented: Plugin = {
  name: "instrumented",
  enforce: "pre",
  transform: (_code, id) => codeOf.get(id.replace(/\?.*/, "")),
}

const config: ViteUserConfig = defineConfig({
  ...base,
  plugins: [...(base.plugins ?? []), instrumented],
  test: {
    ...base.test,
    include: [...tests],
    runner: "test/mutation/switched/runner.ts",
    pool: "forks",
    maxWorkers: 1,
    maxConcurrency: 1,
    sequence: { sequencer: inOrder(tests) },
    globalSetup: needsRedis ? ["test/servers/global-setup.ts"] : [],
    setupFiles: ["test/mutation/without-shrinking.ts"],
    coverage: { enabled: false },
    reporters: [{}],
    update: false,
    // Ignore unhandled errors, because work that a mutant left behind may fail later, when no test awaits it.
    dangerouslyIgnoreUnhandledErrors: true,
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
  },
})
export default config
