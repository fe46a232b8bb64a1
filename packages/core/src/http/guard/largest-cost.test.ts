import { describe, expect, it } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import type { RateRule } from "../../rules/rule.ts"
import { createGuard } from "./create-guard.ts"

const QUIET = { warn() {}, error() {} }

/** Returns the largest cost in the refusal's text, and whether that cost is accepted and a larger cost is not. */
async function largestCost(rule: Partial<RateRule>) {
  const { cost: ruleCost, ...members } = rule
  let cost = Number.MAX_SAFE_INTEGER
  const guard = createGuard<object>({
    rules: [
      {
        field: "service",
        limit: 10,
        window: "1m",
        ...members,
        ...(ruleCost !== undefined && { cost: ruleCost }),
      },
    ],
    cost: () => cost,
    clock: manualClock(),
    logger: QUIET,
  })
  const { rejection } = await guard.check({}, {})
  const [, named] = /The largest cost that is accepted is (\d+)\./.exec(rejection?.body ?? "") ?? []
  cost = Number(named) + 1
  expect((await guard.check({}, {})).decision).toMatchObject({ allowed: false, refusal: "cost" })
  cost = Number(named)
  expect((await guard.check({}, {})).decision.allowed).toBe(true)
  await guard.close()
  return Number(named)
}

const elastic = (isSpare: boolean, ceiling?: number) => ({
  throttle: { kind: "elastic", signal: () => isSpare, ...(ceiling !== undefined && { ceiling }) } as const,
})

describe("the largest cost that a refusal names", () => {
  it.each<[string, Partial<RateRule>, number]>([
    ["the limit", {}, 10],
    ["the limit divided by the rule's cost", { cost: 3 }, 3],
    ["the limit plus the percentage of a soft rule", { throttle: { kind: "soft", percent: 25 } }, 12],
    [
      "the limit plus a soft rule's percentage, divided by the rule's cost",
      { throttle: { kind: "soft", percent: 25 }, cost: 6 },
      2,
    ],
    ["the burst of a bucket", { algorithm: "token-bucket", burst: 70 }, 70],
    [
      "the burst plus a percentage of the limit",
      { algorithm: "token-bucket", burst: 70, throttle: soft(30) },
      73,
    ],
    ["0 if the limit is 0", { algorithm: "token-bucket", burst: 70, limit: () => 0 }, 0],
    ["the ceiling of an elastic rule", elastic(true, 15), 15],
    ["the largest number that can be counted exactly if there is no ceiling", elastic(true), 150_119_987_578],
  ])("is %s", async (_name, rule, expected) => expect(await largestCost(rule)).toBe(expected))
})

function soft(percent: number) {
  return { kind: "soft", percent } as const
}
