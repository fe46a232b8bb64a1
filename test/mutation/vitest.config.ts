import { relative } from "node:path"
import { defineConfig, type ViteUserConfig } from "vitest/config"
import type { TestSequencer, TestSpecification } from "vitest/node"
import base from "../../vitest.config.ts"
import { ROOMS } from "./rooms.ts"

// The tests of one room, which MUTATION_ROOM names: Stryker runs them for every mutant. With MUTATION_THOROUGH the thorough ones, for
// what the quick ones have left.
const { MUTATION_ROOM = "", MUTATION_THOROUGH = "" } = process.env
const room = ROOMS[MUTATION_ROOM]
if (room === undefined) throw new Error(`MUTATION_ROOM has to be one of ${Object.keys(ROOMS).join(", ")}`)
const isThorough = MUTATION_THOROUGH !== ""
const tests = isThorough ? room.thorough : room.quick

/** Files in the order in which the room names them: where one notices the mutant, those after it need not run. A pattern has no order. */
class InOrder implements TestSequencer {
  shard(files: TestSpecification[]): TestSpecification[] {
    return files
  }

  sort(files: TestSpecification[]): TestSpecification[] {
    const place = ({ moduleId }: TestSpecification) => tests.indexOf(relative(process.cwd(), moduleId))
    return files.toSorted((one, other) => place(one) - place(other))
  }
}

const config: ViteUserConfig = defineConfig({
  ...base,
  test: {
    ...base.test,
    include: [...tests],
    // A thread and the imports for each file anew would take longer than the tests.
    isolate: false,
    sequence: { sequencer: InOrder },
    globalSetup: room.needsRedis && isThorough ? ["test/servers/global-setup.ts"] : [],
    setupFiles: ["test/mutation/without-shrinking.ts"],
    coverage: { enabled: false },
    // A mutant that hangs is ended by Stryker, which knows how long the tests take without it.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
export default config
