import { describe, expect, it } from "vitest"
import { examples } from "../../test/test-length.ts"
import type { Drill } from "./drill.ts"
import { anyWindow } from "./drills/any-window.ts"
import { clockOff } from "./drills/clock-off.ts"
import { exact } from "./drills/exact.ts"
import { head } from "./drills/head.ts"
import { headers } from "./drills/headers.ts"
import { ipv6 } from "./drills/ipv6.ts"
import { junkKeys } from "./drills/junk-keys.ts"
import { atStart, closed, frozen } from "./drills/redis-gone.ts"
import { refusedCost } from "./drills/refused-cost.ts"
import { retry } from "./drills/retry.ts"
import { severalLimits } from "./drills/several-limits.ts"
import { DRILLS } from "./drills.ts"
import { inWorldOf, type Manners, networkOf, wholeSecondsUp } from "./testing/limited-app.ts"
import { byLogs, type CreateCounting, inMemory, insured, remembering } from "./testing/takes.ts"
import {
  always,
  byConnectedLogs,
  byFirstLimit,
  byOwnClock,
  inFixedWindows,
  inTurn,
  inTwoSteps,
} from "./testing/wrong-takes.ts"

// Runs each drill over real HTTP and a real Redis, with limiters that have known faults and with a correct limiter.

const run = (drill: Drill, create: CreateCounting, manners: Manners = {}) =>
  inWorldOf(create, manners, (world) => drill.run(world))

/** This limiter never falls back to its own counters, because a busy machine may delay Redis. */
const right = insured(remembering(byLogs), { isForEver: false, deadlineMs: 20_000 })
/** This limiter falls back to its own counters soon after Redis fails. */
const prompt = insured(remembering(byLogs), { isForEver: false })
const late = insured(byLogs, { isForEver: false, deadlineMs: 2_000 })
const admitsAll = always({ waitMs: 0, remaining: 1 })
const inEachProcess = inMemory(Number.POSITIVE_INFINITY)
/**
 * The drill that counts in memory needs its own limiter. All other drills count in Redis, which is unavailable in
 * some of them.
 */
function rightFor(drill: Drill): CreateCounting {
  if (drill === junkKeys) return inEachProcess
  return [frozen, closed, atStart].includes(drill) ? prompt : right
}

const NAMED = DRILLS.map((drill) => [drill.name, drill] as const)

/** A drill, a limiter's fault in words, that limiter, its HTTP behavior, and the drill's finding. */
type Wrong = readonly [Drill, string, CreateCounting, Manners, string | RegExp]

const WRONG: readonly Wrong[] = [
  [anyWindow, "admits two full windows back to back", inFixedWindows, {}, /^(1[1-9]|20) of 10$/],
  [
    retry,
    "rounds the wait down",
    right,
    { tellWait: (ms) => `${Math.floor(ms / 1_000)}` },
    /^[0-5] of 6 admitted; .* too little/,
  ],
  [
    retry,
    "sends a wait that is four seconds too long",
    right,
    { tellWait: (ms) => `${Number(wholeSecondsUp(ms)) + 4}` },
    /^6 of 6 admitted; told .* too much$/,
  ],
  [retry, "sends no wait", right, { tellWait: () => undefined }, "no time is told"],
  [severalLimits, "enforces only the first limit", byFirstLimit, {}, /short one 4 of 4 /],
  [severalLimits, "takes units from the short limit first", inTurn(false), {}, /long one 0 of 1;/],
  [refusedCost, "calls Redis for each refusal", byLogs, {}, /; 1\.00 calls/],
  [exact, "reads before it counts", inTwoSteps, {}, /^(?!50, 50, 50)/],
  [clockOff, "uses the clock of its process", byOwnClock, {}, "10 more admitted"],
  [frozen, "waits for Redis", byLogs, { patienceMs: 5_000 }, /^first no response/],
  [frozen, "waits two seconds before it falls back", late, { promptMs: 1_000 }, /^first 200 in \d+\.\d s/],
  [closed, "never asks Redis again", insured(byLogs, { isForEver: true }), {}, /does not recover$/],
  [
    closed,
    "responds with an error when Redis fails",
    byConnectedLogs,
    { failsWithRedis: true },
    /^first 500/,
  ],
  [atStart, "waits for Redis", byLogs, { patienceMs: 5_000 }, /^first no response/],
  [head, "counts HEAD requests separately", right, { countsHeadApart: true }, "8 of 4 (4 GET, 4 HEAD)"],
  [junkKeys, "evicts the least recently seen client", inMemory(5_000), {}, /^forgotten/],
  [ipv6, "counts each address separately", right, { identify: (address) => address }, /^20 of 5 .* 10 of 5 /],
  [
    ipv6,
    "counts spellings of an IPv4 address separately",
    right,
    { identify: bySpelling },
    /^5 of 5 .* 10 of 5 /,
  ],
  [ipv6, "counts all IPv6 addresses as one client", right, { identify: firstGroup }, /others mixed up$/],
  [
    headers,
    "sends no headers",
    right,
    { tellWait: () => undefined, tellRemaining: () => undefined },
    /200: none/,
  ],
  [
    headers,
    "reports too many remaining requests",
    right,
    { tellRemaining: (left) => `${left + 1}` },
    /told 5 left, were 4$/,
  ],
]

describe.concurrent("the drill", { timeout: 600_000 }, () => {
  it.each(NAMED)('"%s" finds no fault in a correct limiter', async (_name, drill) => {
    const { isGood, seen } = await run(drill, rightFor(drill))
    expect(isGood, seen).toBe(true)
  })

  // The drill must also detect a second fault, listed below.
  it.each(NAMED.slice(0, examples(0, NAMED.length)))(
    '"%s" finds a fault in a limiter that admits everything',
    async (_name, drill) => {
      const finding = run(drill, admitsAll)
      // The outage drills first check that the app enforces its limit, and throw if it does not.
      if (drill === frozen || drill === closed)
        await expect(finding).rejects.toThrow("13 of 10 were admitted")
      else expect(await finding).toMatchObject({ isGood: false })
    },
  )

  it.each(WRONG.map(([drill, fault, ...rest]) => [drill.name, fault, drill, ...rest] as const))(
    '"%s" finds the fault of a limiter that %s',
    async (_name, _fault, drill, create, manners, seen) => {
      const finding = await run(drill, create, manners)
      expect(finding.isGood, finding.seen).toBe(false)
      expect(finding.seen).toMatch(seen)
    },
  )
})

function bySpelling(address: string): string {
  return address.startsWith("::ffff:") ? address : networkOf(address)
}

function firstGroup(address: string): string {
  return networkOf(address).split(":")[0] ?? ""
}
