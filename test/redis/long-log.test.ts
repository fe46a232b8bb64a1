import { describe, expect, it } from "vitest"
import { manualClock } from "../../packages/core/src/ground/manual-clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import { commandsOf } from "../../packages/redis/src/clients/commands-of.ts"
import { PEEK, REFUND, TAKE } from "../../packages/redis/src/scripts.ts"
import { LONG_LOG_CASES, type LongLog, MOST_DIGITS } from "../long-log.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { compactStore } from "./compact-store.ts"

const { client } = await redisForTests()

describe("a log of 1,000 entries in Redis", () => {
  it.each(LONG_LOG_CASES)("reads only a few entries when it $name", async ({ policy, act }) => {
    await client.flushall()
    const clock = manualClock()
    const sent = commandsOf(client)
    let isCounting = false
    const commands: typeof sent = {
      ...sent,
      evalsha: (sha, keys, args) =>
        isCounting
          ? client.eval(countingText(sha), keys.length, ...keys, ...args)
          : sent.evalsha(sha, keys, args),
    }
    const store = compactStore(client, clock, { commands, isWide: true })
    const log: LongLog = {
      clock,
      take: async (under: Policy) =>
        await store.take([{ policy: under, partition: "alice", cost: 1, shadow: false }]),
      refund: async (under, units, after) =>
        await store.refund([{ policy: under, partition: "alice", units, after }]),
    }
    await act(log, policy, async (work) => {
      await client.set(STEPS, 0)
      isCounting = true
      await work()
      isCounting = false
      const steps = Number(await client.get(STEPS))
      expect(steps).toBeGreaterThan(0)
      expect(steps).toBeLessThan(MOST_DIGITS)
    })
    store.close()
  })
})

const STEPS = "steps"

/** Returns the script with this digest, modified so that it counts the digits that it reads. */
function countingText(sha: string): string {
  const script = [TAKE, PEEK, REFUND].find((each) => each.sha === sha)
  return `
local steps, given = 0, string
local string = setmetatable({
  byte = function(...)
    steps = steps + 1
    return given.byte(...)
  end,
}, { __index = given })
local function script()
${script?.text}
end
local answer = script()
redis.call("INCRBY", "${STEPS}", steps)
return answer`
}
