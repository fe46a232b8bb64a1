import { describe, expect, it } from "vitest"
import { slidingWindow } from "../../packages/core/src/algorithms/sliding-window.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import { at, Example, HOUR, inMemoryAndRedis, MINUTE, SECOND, START_MS } from "./example.ts"

// Examples of windows and logs. docs/inside/worked-examples.md lists them by the beginnings of their titles.

inMemoryAndRedis((open) => {
  describe("the counter of two windows", () => {
    it("35 of 40: with 50 requests in the previous minute and 5 in this one, the next is the 35th", async () => {
      let limit = 50
      const example = new Example(open, { limit: () => limit, window: "1 minute" })
      expect(await example.ask(30 * SECOND, 60)).toBe(50)
      limit = 40
      expect(await example.ask(MINUTE + 24 * SECOND, 5)).toBe(5)
      expect(await example.used(MINUTE + 24.6 * SECOND)).toBe(34)
      expect(await example.ask(MINUTE + 24.6 * SECOND)).toBe(1)
      expect(example.latest).toMatchObject({ limit: 40, remaining: 40 - 35 })
    })

    it("3 of 10: after 10 requests in the previous minute and 2 in this one, 3 count at 0:54", async () => {
      const example = new Example(open, { limit: 10, window: "1 minute" })
      expect(await example.ask(30 * SECOND, 10)).toBe(10)
      // At the 50th second, 10 * 10 / 60 of the earlier requests count, so both new requests are admitted.
      expect(await example.ask(MINUTE + 50 * SECOND, 2)).toBe(2)
      expect(await example.used(MINUTE + 54 * SECOND)).toBe(3)
      expect(await example.ask(MINUTE + 54 * SECOND)).toBe(1)
      expect(example.latest).toMatchObject({ limit: 10, remaining: 10 - 4 })
    })

    it("40 of 40: when exactly 40 requests count, the next request is refused for a millisecond", async () => {
      let limit = 50
      const example = new Example(open, { limit: () => limit, window: "1 minute" })
      expect(await example.ask(30 * SECOND, 50)).toBe(50)
      limit = 40
      // 0.6 * 50 + 10 = 40. The document's ceiling would admit a 41st request.
      expect(await example.ask(MINUTE + 24 * SECOND, 11)).toBe(10)
      expect(example.latest).toMatchObject({ remaining: 0, retryAfterMs: 1 })
      expect(await example.ask(MINUTE + 24 * SECOND + 1)).toBe(1)
    })

    it("20:23:12: the hour of a request at 20:23:12 begins at 20:00:00 and counts until 22:00:00", async () => {
      const example = new Example(open, { limit: 100, window: "1 hour" })
      expect(await example.ask(at("20:23:12"), 100)).toBe(100)
      expect(example.latest.checks[0]?.counts?.startMs).toBe(START_MS + at("20:00"))
      expect([await example.used(at("20:59:59")), await example.used(at("21:30"))]).toEqual([100, 50])
      expect([await example.used(at("21:59:24")), await example.used(at("22:00"))]).toEqual([1, 0])
    })
  })

  describe("fixed windows and logs", () => {
    it("15 a second: a limit of 15 a second admits 900 requests a minute, and 15 a minute admits 15", async () => {
      const askEachSecond = async (...windows: string[]) => {
        const rules = windows.map((window) => ({ limit: 15, window, algorithm: "fixed-window" as const }))
        const example = new Example(open, ...rules)
        let admitted = 0
        for (let second = 0; second < 60; second++) admitted += await example.ask(second * SECOND, 20)
        return admitted
      }
      expect(await askEachSecond("1 second")).toBe(900)
      expect(await askEachSecond("1 minute")).toBe(15)
      expect(await askEachSecond("1 second", "1 minute")).toBe(15)
    })

    it("300 and 400 ms: requests count for a second in rolling windows, and until 1,000 ms in fixed windows", async () => {
      const rolling = new Example(open, { limit: 2, window: "1 second", algorithm: "sliding-log" })
      expect([await rolling.ask(300), await rolling.ask(400), await rolling.ask(1_000)]).toEqual([1, 1, 0])
      // Both ends of the second are included.
      expect(rolling.latest.retryAfterMs).toBe(301)
      expect([await rolling.ask(1_300), await rolling.ask(1_301, 2), await rolling.ask(1_401)]).toEqual([
        0, 1, 1,
      ])

      const fixed = new Example(open, { limit: 2, window: "1 second", algorithm: "fixed-window" })
      expect([await fixed.ask(300), await fixed.ask(400), await fixed.ask(999)]).toEqual([1, 1, 0])
      expect(fixed.latest.retryAfterMs).toBe(1)
      expect(await fixed.ask(1_000, 3)).toBe(2)
    })

    it("3 a minute: when 2 of 3 are used, one of two concurrent requests is admitted", async () => {
      const example = new Example(open, { limit: 3, window: "1 minute", algorithm: "fixed-window" })
      expect(await example.ask(0, 2)).toBe(2)
      expect(await example.ask(0, 2)).toBe(1)
    })

    it.each([
      ["fixed-window", 6],
      ["sliding-log", 3],
    ] as const)(
      "3 and 3: of 3 requests before the end of a minute and 3 after, %s admits %i",
      async (algorithm, admitted) => {
        const example = new Example(open, { limit: 3, window: "1 minute", algorithm })
        expect((await example.ask(59 * SECOND, 3)) + (await example.ask(MINUTE, 3))).toBe(admitted)
      },
    )

    it("1:25 to 2:25: the log at 2:25 counts from 1:25 to 2:25, including both ends", async () => {
      const example = new Example(open, { limit: 2, window: "1 hour", algorithm: "sliding-log" })
      expect([
        await example.ask(at("1:25")),
        await example.ask(at("1:50")),
        await example.ask(at("2:25")),
      ]).toEqual([1, 1, 0])
      expect(example.latest.retryAfterMs).toBe(1)
      expect(await example.ask(at("2:25") + 1)).toBe(1)
      // From 1:50 on, the window contains two requests again.
      expect([await example.ask(at("2:50")), await example.ask(at("2:50") + 1)]).toEqual([0, 1])
    })

    it.each([
      ["fixed-window", 8],
      // Five of the seven requests still count, because three quarters of that hour are in the window.
      ["sliding-window", 5],
      ["sliding-window-strict", 3],
      ["sliding-log", 3],
    ] as const)(
      "7 and 8 of 10: at 10 an hour, after 7 requests at 1:30, %s admits %i more at 2:15",
      async (algorithm, admitted) => {
        const example = new Example(open, { limit: 10, window: "1 hour", algorithm })
        expect(await example.ask(at("1:30"), 7)).toBe(7)
        expect(await example.ask(at("2:15"), 8)).toBe(admitted)
      },
    )
  })

  describe("windows with sub-windows", () => {
    it.each([3, 60])(
      "10, 20 and 30: in an hour of %i sub-windows, only the requests of the past hour count",
      async (buckets) => {
        // The hour before 2:50 begins at 1:50. That hour contains only the 30 requests from 2:00 to 2:20.
        const example = new Example(open, { limit: 100, window: "1 hour", buckets })
        expect([
          await example.ask(at("1:05"), 10),
          await example.ask(at("1:25"), 20),
          await example.ask(at("2:05"), 30),
        ]).toEqual([10, 20, 30])
        expect(await example.used(at("2:50"))).toBe(30)
        expect(await example.ask(at("2:50"))).toBe(1)
        expect(example.latest.remaining).toBe(100 - 31)
      },
    )

    it("10 of 20 minutes: the oldest of three sub-windows counts in proportion to its share within the hour", async () => {
      // At 2:50, the hour begins in the middle of the sub-window from 1:40 to 2:00.
      const example = new Example(open, { limit: 100, window: "1 hour", buckets: 3 })
      expect([
        await example.ask(at("1:45"), 10),
        await example.ask(at("2:05"), 20),
        await example.ask(at("2:25"), 30),
      ]).toEqual([10, 20, 30])
      expect(await example.used(at("2:50"))).toBe(5 + 20 + 30)
    })

    it.each(["sliding-window", "sliding-window-strict"] as const)(
      "350 of 500: at 10 a minute, %s counts 350 after 35 minutes, and all 500 after 50",
      async (algorithm) => {
        const perMinute = { limit: 10, window: "1 minute", algorithm: "fixed-window" } as const
        const perHour = { limit: 500, window: "1 hour", algorithm, buckets: 60 }
        const example = new Example(open, { ...perMinute, name: "minute" }, { ...perHour, name: "hour" })
        const left = () => example.latest.checks.find(({ policy }) => policy === "hour")?.remaining
        for (let minute = 0; minute < 35; minute++) expect(await example.ask(minute * MINUTE, 15)).toBe(10)
        // The 175 requests that the per-minute limit refused use no units of the hourly limit.
        expect(left()).toBe(500 - 350)
        expect(example.latest).toMatchObject({ policy: "minute", retryAfterMs: MINUTE })
        for (let minute = 35; minute < 50; minute++) expect(await example.ask(minute * MINUTE, 15)).toBe(10)
        expect(left()).toBe(0)
        expect(await example.ask(50 * MINUTE, 15)).toBe(0)
        expect(example.latest.policy).toBe("hour")
        // At 1:00, the first minute begins to leave the hour. The strict window counts that minute in full until
        // 1:01.
        const waitMs = algorithm === "sliding-window" ? 10 * MINUTE + 1 : 11 * MINUTE
        expect(example.latest.retryAfterMs).toBe(waitMs)
        expect(await example.ask(50 * MINUTE + waitMs - 1)).toBe(0)
        expect(await example.ask(50 * MINUTE + waitMs)).toBe(1)
      },
    )
  })
})

it("rounding: the document's ceiling agrees with Sluice, except that it admits one more request at exactly the limit", () => {
  const windowMs = 10
  const cases = { exactlyTheLimit: 0, differ: 0, others: 0 }
  for (let limit = 1; limit <= 12; limit++) {
    const policy: Policy = {
      ...{ name: "p", counter: "p", algorithm: "sliding-window", align: "epoch" },
      ...{ limit, windowMs },
    }
    for (let previous = 0; previous <= 12; previous++) {
      for (let current = 0; current <= 12; current++) {
        for (let elapsedMs = 0; elapsedMs < windowMs; elapsedMs++) {
          const state = { startMs: HOUR, current, previous }
          // Multiply both sides by the window, so that no fraction is rounded.
          const counted = previous * (windowMs - elapsedMs) + current * windowMs
          const document = counted <= limit * windowMs
          const sluice = slidingWindow.admits(state, policy, 1, HOUR + elapsedMs)
          if (counted === limit * windowMs && document && !sluice) cases.exactlyTheLimit++
          else if (document !== sluice) cases.differ++
          else cases.others++
        }
      }
    }
  }
  expect(cases).toEqual({ exactlyTheLimit: expect.any(Number), differ: 0, others: expect.any(Number) })
  expect(cases.exactlyTheLimit).toBeGreaterThan(100)
  expect(cases.others).toBeGreaterThan(10_000)
})
