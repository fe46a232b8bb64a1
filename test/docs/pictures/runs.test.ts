import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { POLICY, runLease } from "../../../docs/pictures/leases.ts"
import { JOBS, runCalls } from "../../../docs/pictures/paced-run.ts"
import { GROWING, runPenalty } from "../../../docs/pictures/penalty.ts"
import { runThrottle, THROTTLES } from "../../../docs/pictures/throttles.ts"
import { ROOT } from "../documents.ts"

// The pictures that show runs on a simulated clock.

const page = (path: string): string => readFileSync(`${ROOT}docs/${path}`, "utf8")

describe("the picture of blocks that grow", () => {
  it("shows the rule of its page, and blocks with the durations in this rule", async () => {
    const { refusals, within, for: lengths } = GROWING.penalty
    const text = page("rules/penalties.md")
    expect(text).toContain(`refusals: ${refusals}, within: "${within}"`)
    expect(text).toContain(`for: ["${lengths.join('", "')}"]`)
    const blocks = await runPenalty()
    expect(blocks.map(({ forMs }) => forMs / 60_000)).toEqual([1, 10, 60, 10])
    // Ten requests are admitted, and the twentieth refusal starts the block.
    expect(blocks[0]?.atMs).toBe(29_000)
  })
})

describe("the picture of throttles", () => {
  it.each([
    ["hard", "7 admitted, 5 refused"],
    ["soft, percent: 40", "6 admitted, 3 above, 3 refused"],
    ["elastic, ceiling: 9", "6 admitted, 5 above, 1 refused"],
    ["queue, maxWaiting: 3", "10 admitted, 2 refused"],
  ] as const)("shows how a burst is handled by a throttle: %s", async (name, expected) => {
    const outcomes = await runThrottle(THROTTLES[name])
    const count = (wanted: string): number => outcomes.filter(({ result }) => result === wanted).length
    const counts = ["admitted", "above", "refused"].map((result) => `${count(result)} ${result}`)
    expect(counts.filter((each) => !each.startsWith("0 ")).join(", ")).toBe(expected)
    // Only a queue delays requests, each for the time in which the bucket refills a unit.
    const held = outcomes.filter(({ atMs, endMs }) => endMs > atMs).map(({ endMs }) => endMs)
    expect(held).toEqual(name.startsWith("queue") ? [2_600, 3_600, 4_600, 5_600] : [])
  })
})

describe("the picture of leases", () => {
  it("shows that leases grant exactly the limit, refund unused units, and make few calls", async () => {
    const moments = await runLease()
    for (const { counted, granted, held } of moments) {
      expect(counted).toBe(granted + held)
      expect(counted).toBeLessThanOrEqual(POLICY.limit)
    }
    expect(moments.at(-1)).toMatchObject({
      requests: 2_600,
      granted: 2_000,
      held: 0,
      returned: 80,
      calls: 141,
    })
  })
})

describe("the picture of paced calls", () => {
  it("shows that a paced client repeats no call and finishes as soon as a client that retries", async () => {
    const [retried, paced] = [await runCalls(false), await runCalls(true)]
    expect(paced.filter(({ isAdmitted }) => isAdmitted)).toHaveLength(JOBS)
    expect(paced).toHaveLength(JOBS)
    expect(retried.filter(({ isAdmitted }) => isAdmitted)).toHaveLength(JOBS)
    expect(retried.length).toBeGreaterThan(10 * JOBS)
    expect(paced.at(-1)?.atMs).toBeLessThanOrEqual(retried.at(-1)?.atMs ?? 0)
  })
})
