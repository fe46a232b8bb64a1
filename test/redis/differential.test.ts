import fc from "fast-check"
import { beforeAll, describe, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { examples } from "../test-length.ts"
import { callTraces } from "./call-traces.ts"
import { loadScripts, play } from "./play.ts"

const { client } = await redisForTests()

beforeAll(() => loadScripts(client))

/** Traces run concurrently, so that no trace waits for the replies to another trace. */
const SEEDS = [7_001, 7_002, 7_003, 7_004]
const TRACES_A_SEED = examples(25, 75)

describe.concurrent.each([
  { layout: "packed", isWide: false },
  { layout: "wide", isWide: true },
])("the scripts in the $layout layout", { timeout: 900_000 }, ({ isWide }) => {
  it.each(SEEDS)("agree with the memory store on every reply, key and TTL (seed %i)", async (seed) => {
    await fc.assert(
      fc.asyncProperty(callTraces(), (trace) => play(client, trace, isWide)),
      { seed, numRuns: TRACES_A_SEED },
    )
  })
})
