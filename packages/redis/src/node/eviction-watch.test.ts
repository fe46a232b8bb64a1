import { setImmediate as nextTurn } from "node:timers/promises"
import type { StoreWarningEvent } from "@sluice/core/stores"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { EvictionWatch } from "./eviction-watch.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }))
afterEach(() => void vi.useRealTimers())

const LOOK_MS = 10_000

/** Creates an eviction watch. The test itself replies to each eviction check. */
function watch() {
  const looks: { answer(...told: readonly unknown[]): Promise<void>; fail(): Promise<void> }[] = []
  const warnings: StoreWarningEvent[] = []
  const ask = () =>
    new Promise<unknown>((resolve, reject) => {
      const after = (settle: () => void) => {
        settle()
        return nextTurn()
      }
      looks.push({
        answer: (...told) => after(() => resolve(told)),
        fail: () => after(() => reject(new Error("gone"))),
      })
    })
  const evictions = new EvictionWatch("Redis at a:1", ask, (event) => warnings.push(event))
  /** Reports a reply of the server after this time. Returns the eviction checks that the reply starts. */
  const repliesAfter = (ms: number) => {
    vi.advanceTimersByTime(ms)
    evictions.replied()
    return looks.splice(0)
  }
  const [first] = repliesAfter(0)
  if (first === undefined) throw new Error("nothing was asked")
  return { first, repliesAfter, warnings, subjects: () => warnings.map(({ subject }) => subject) }
}

describe("the eviction watch", () => {
  it("checks the server after its first reply and then at most every ten seconds, one check at a time", async () => {
    const { first, repliesAfter } = watch()
    expect(repliesAfter(60 * LOOK_MS)).toEqual([])
    await first.answer("noeviction", "0")
    expect(repliesAfter(LOOK_MS - 1)).toEqual([])
    expect(repliesAfter(1)).toHaveLength(1)
  })

  it.each(["allkeys-lru", "volatile-ttl"])("warns about the eviction policy %s", async (policy) => {
    const { first, warnings } = watch()
    await first.answer(policy, "7")
    expect(warnings).toMatchObject([
      { type: "warning", code: "SLUICE_STORE_EVICTS", subject: "policy Redis at a:1" },
    ])
    expect(warnings[0]?.message).toContain(
      `Redis at a:1 deletes counters when it is full (maxmemory-policy ${policy})`,
    )
    expect(warnings[0]?.message).toContain("Set maxmemory-policy to noeviction")
  })

  it("warns when the number of evicted keys grows, but not when a restart resets it", async () => {
    const { first, repliesAfter, warnings, subjects } = watch()
    await first.answer("noeviction", "7")
    await repliesAfter(LOOK_MS)[0]?.answer("noeviction", "7")
    expect(warnings).toEqual([])
    await repliesAfter(LOOK_MS)[0]?.answer("noeviction", "21")
    expect(subjects()).toEqual(["evicted Redis at a:1"])
    expect(warnings[0]?.message).toContain("evicted 14 keys")
    await repliesAfter(LOOK_MS)[0]?.answer("noeviction", "0")
    await repliesAfter(LOOK_MS)[0]?.answer("noeviction", "1")
    expect(warnings.slice(1)).toMatchObject([{ message: expect.stringContaining("evicted 1 key,") }])
  })

  it.each([[""], [5], ["now"], ["ERR unknown"], ["no noeviction"], ["allkeys-lru2"]])(
    "never checks again after a reply with the invalid policy %j",
    async (policy) => {
      const { first, repliesAfter, warnings } = watch()
      await first.answer(policy, "0")
      expect([repliesAfter(60 * LOOK_MS), warnings]).toEqual([[], []])
    },
  )

  it("does not warn after a failed check, and checks again later", async () => {
    const { first, repliesAfter, warnings } = watch()
    await first.fail()
    expect([repliesAfter(LOOK_MS).length, warnings]).toEqual([1, []])
  })
})
