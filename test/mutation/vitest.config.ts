import { defineConfig, type ViteUserConfig } from "vitest/config"
import base from "../../vitest.config.ts"
import { inOrder } from "./in-order.ts"
import { ROOMS } from "./rooms.ts"

// Runs all tests of the room that MUTATION_ROOM names. Stryker runs the tests that reach a mutant, each time in a new
// thread.
const { MUTATION_ROOM = "" } = process.env
const room = ROOMS[MUTATION_ROOM]
if (room === undefined) throw new Error(`MUTATION_ROOM has to be one of ${Object.keys(ROOMS).join(", ")}`)
const { tests } = room

const config: ViteUserConfig = defineConfig({
  ...base,
  test: {
    ...base.test,
    include: [...tests],
    sequence: { sequencer: inOrder(tests) },
    globalSetup: room.needsRedis ? ["test/servers/global-setup.ts"] : [],
    setupFiles: ["test/mutation/without-shrinking.ts"],
    coverage: { enabled: false },
    // Use long timeouts. Stryker ends a mutant that hangs, because it knows how long the tests take without the
    // mutant.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
export default config
