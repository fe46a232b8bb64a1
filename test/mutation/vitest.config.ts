import { defineConfig, type ViteUserConfig } from "vitest/config"
import base from "../../vitest.config.ts"
import { inOrder } from "./in-order.ts"
import { ROOMS } from "./rooms.ts"

// All tests of one room, which MUTATION_ROOM names: Stryker runs those that reach a mutant, each time in a thread of their own.
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
    // A mutant that hangs is ended by Stryker, which knows how long the tests take without it.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
export default config
