import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { defineConfig, type Plugin, type ViteUserConfig } from "vitest/config"
import { BaseSequencer, type Reporter, type TestSpecification } from "vitest/node"
import { pageTexts } from "./pages/page-texts.ts"

const packages = fileURLToPath(new URL("./packages", import.meta.url))

let files = 0
let filesDone = 0

/**
 * Prints after every 20 files how many are done. At the end, prints each skipped test. Its name contains what the
 * implementation does not do, and why.
 */
const progress: Reporter = {
  onTestRunStart(specifications) {
    files = specifications.length
    filesDone = 0
  },
  onTestModuleEnd() {
    filesDone++
    if (filesDone % 20 === 0) console.log(` ${filesDone} of ${files} files are done`)
  },
  onTestRunEnd(modules) {
    for (const module of modules) {
      for (const test of module.children.allTests("skipped")) console.log(` skipped: ${test.fullName}`)
    }
  },
}

/**
 * Starts the tests of units last. They are quick, so that all workers end at nearly the same time. Vitest starts with the
 * files that were slow before, which are unknown in a new clone.
 */
class QuickFilesLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isQuick = ({ moduleId }: TestSpecification): boolean => moduleId.startsWith(packages)
    return [...sorted.filter((file) => !isQuick(file)), ...sorted.filter(isQuick)]
  }
}

/** Imports Lua scripts as text, as the build does. */
const luaAsText: Plugin = {
  name: "lua-as-text",
  transform: (code, id) => (id.endsWith(".lua") ? `export default ${JSON.stringify(code)}` : undefined),
}

const config: ViteUserConfig = defineConfig({
  plugins: [luaAsText, pageTexts()],
  resolve: {
    // Tests run on the sources, so that coverage counts them and no build is needed; `pnpm packages` runs what is
    // published.
    alias: [
      { find: /^@sluice\/([\w-]+)$/, replacement: `${packages}/$1/src/index.ts` },
      { find: /^@sluice\/([\w-]+)\/([\w-]+)$/, replacement: `${packages}/$1/src/$2.ts` },
      // Otherwise, Vite loads the ES modules of graphql, and packages that Node loads get its CommonJS modules.
      { find: /^graphql$/, replacement: "graphql/index.js" },
    ],
  },
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "test/**/*.test.ts",
      "examples/**/*.test.ts",
      "bench/**/*.test.ts",
    ],
    // Otherwise, the AWS SDK warns in each process that it will drop Node 20.
    env: { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" },
    // Finds the Redis that tests start. Without one, fails the run with a line that explains how to get it.
    globalSetup: ["test/servers/global-setup.ts"],
    setupFiles: ["test/property-seed.ts"],
    // The files of a worker share their modules. Importing the modules again for each file takes as long as all tests.
    isolate: false,
    // The slow files mostly wait, for example for a server to start or a window to end. A third worker for two cores
    // works in the meantime.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    sequence: { sequencer: QuickFilesLast },
    // Concurrent tests of a file mostly wait, too.
    maxConcurrency: 10,
    reporters: ["default", progress],
    // Warnings that tests provoke would hide the progress. The tests still receive them.
    execArgv: ["--disable-warning=SluiceWarning"],
    // These timeouts only end tests that hang, even on a very busy machine. No test measures speed.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    coverage: {
      // CI runs all tests once, with coverage.
      enabled: process.env.CI === "true",
      provider: "v8",
      include: ["packages/*/src/**/*.ts"],
      // The main files of the programs only run in child processes: test/cli/process.test.ts, test/service/program-*.test.ts.
      exclude: [
        ...["**/*.test.ts", "**/*.test-d.ts", "**/testing/**"],
        // Run in the browser: test/logs/report-browser.test.ts, test/dashboard/page.test.ts.
        "packages/logs/src/report/page/**",
        "packages/dashboard/src/page/**",
        ...[
          "packages/cli/src/main.ts",
          "packages/service/src/main.ts",
          "packages/service/src/program/run.ts",
        ],
      ],
      reporter: ["text", "text-summary"],
      reportOnFailure: true,
      thresholds: { lines: 98, functions: 98, statements: 98, branches: 98 },
    },
  },
})
export default config
