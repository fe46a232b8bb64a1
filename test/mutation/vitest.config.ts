import { relative } from "node:path"
import { defineConfig, type ViteUserConfig } from "vitest/config"
import type { TestSequencer, TestSpecification } from "vitest/node"
import base from "../../vitest.config.ts"
import { ROOMS } from "./rooms.ts"

// The tests of one room, which MUTATION_ROOM names: Stryker runs them for every mutant.
const room = ROOMS[process.env.MUTATION_ROOM ?? ""]
if (room === undefined) throw new Error(`MUTATION_ROOM has to be one of ${Object.keys(ROOMS).join(", ")}`)

/** Files in the order in which the room lists them: most mutants fall to a quick one, and the others need not run. */
class InOrder implements TestSequencer {
  shard(files: TestSpecification[]): TestSpecification[] {
    return files
  }

  sort(files: TestSpecification[]): TestSpecification[] {
    const place = ({ moduleId }: TestSpecification) => room?.tests.indexOf(relative(process.cwd(), moduleId))
    return files.toSorted((one, other) => (place(one) ?? 0) - (place(other) ?? 0))
  }
}

const config: ViteUserConfig = defineConfig({
  ...base,
  test: {
    ...base.test,
    include: [...room.tests],
    // A process and the imports for each file anew would take longer than the tests.
    isolate: false,
    sequence: { sequencer: InOrder },
    globalSetup: room.needsRedis ? ["test/servers/global-setup.ts"] : [],
    setupFiles: ["test/mutation/without-shrinking.ts"],
    coverage: { enabled: false },
    // A mutant that hangs is ended by Stryker, which knows how long the tests take without it.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
export default config
