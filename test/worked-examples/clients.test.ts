import { describe, expect, it } from "vitest"
import { Example, HOUR, inMemoryAndRedis, MINUTE, SECOND } from "./example.ts"

// These are examples of buckets, throttling and clients that keep sending requests. docs/inside/worked-examples.md
// lists the examples by the beginnings of their titles.

inMemoryAndRedis((open) => {
  describe("above the limit", () => {
    it("525 of 500: a soft limit of 500 a minute with 5 % admits 525 and marks the last 25", async () => {
      const example = new Example(open, {
        limit: 500,
        window: "1 minute",
        throttle: { kind: "soft", percent: 5 },
      })
      const overLimit: boolean[] = []
      example.limiter.on("decision", ({ allowed, overLimit: isOver }) => {
        if (allowed) overLimit.push(isOver)
      })
      expect(await example.ask(0, 600)).toBe(525)
      expect(overLimit).toEqual([...Array(500).fill(false), ...Array(25).fill(true)])
      expect(example.latest).toMatchObject({ allowed: false, limit: 500, remaining: 0 })
    })
  })

  describe("buckets", () => {
    const bucket = { limit: 2, window: "1 minute", algorithm: "token-bucket", burst: 3 } as const

    it("2 of 3 in one burst: a bucket of 3 units grants 2 units in one burst every minute", async () => {
      const example = new Example(open, { ...bucket, refill: "periodic" })
      expect(await example.ask(10 * SECOND, 4)).toBe(3)
      expect(example.latest.retryAfterMs).toBe(50 * SECOND)
      expect(await example.ask(MINUTE - 1)).toBe(0)
      expect(await example.ask(MINUTE, 3)).toBe(2)
      // After five minutes, the bucket contains no more than its capacity.
      expect(await example.ask(6 * MINUTE, 4)).toBe(3)
    })

    it("2 of 3 evenly: a bucket of 3 units grants a unit every 30 seconds", async () => {
      const example = new Example(open, bucket)
      expect(await example.ask(10 * SECOND, 4)).toBe(3)
      expect(example.latest.retryAfterMs).toBe(30 * SECOND)
      expect([await example.ask(40 * SECOND - 1), await example.ask(40 * SECOND, 2)]).toEqual([0, 1])
      expect(await example.ask(6 * MINUTE, 4)).toBe(3)
    })
  })

  describe("a client that keeps asking", () => {
    it("20 entries: an abusive client's log contains only admitted requests, however many requests the client sends", async () => {
      const example = new Example(open, { limit: 20, window: "1 hour", algorithm: "sliding-log" })
      const lengths: number[] = []
      for (let minute = 0; minute < 90; minute++) {
        await example.ask(minute * MINUTE, 10)
        lengths.push(example.latest.checks[0]?.counts?.parts?.length ?? 0)
      }
      // The value has one digit, and five digits for each entry: four for the time within an hour, and one for the
      // units.
      expect(Math.max(...lengths)).toBeLessThanOrEqual(1 + 20 * (4 + 1))
      expect(await example.used(89 * MINUTE)).toBe(20)
    })

    it("each second: a client that asks every second gets 2 units a minute, or none with countRejected until it pauses", async () => {
      const rule = { limit: 2, window: "1 minute", algorithm: "sliding-window-strict", buckets: 6 } as const
      // Ten seconds are added to each minute, because the units of a sub-window count until the whole sub-window has
      // passed.
      const seconds = 3 * 70
      const admittedOf = async (example: Example) => {
        let admitted = 0
        for (let second = 0; second < seconds; second++) admitted += await example.ask(second * SECOND)
        return admitted
      }
      expect(await admittedOf(new Example(open, rule))).toBe(3 * 2)
      const counting = new Example(open, { ...rule, countRejected: true })
      expect(await admittedOf(counting)).toBe(2)
      const { retryAfterMs } = counting.latest
      expect(retryAfterMs).toBeGreaterThan(0)
      // The client pauses for the stated time, and is admitted.
      expect(await counting.ask((seconds - 1) * SECOND + retryAfterMs)).toBe(1)
    })

    it("20 refusals: a client that is refused 20 times in a minute is blocked for an hour, until a reset", async () => {
      const penalty = { refusals: 20, within: "1 minute", for: "1 hour" }
      const example = new Example(open, { limit: 5, window: "1 minute", penalty })
      expect(await example.ask(0, 24)).toBe(5)
      expect(example.latest).toMatchObject({ refusal: "quota" })
      expect(await example.ask(SECOND)).toBe(0)
      expect(example.latest).toMatchObject({ refusal: "penalty", retryAfterMs: HOUR })
      expect([await example.ask(HOUR), await example.ask(HOUR, 1, "bob")]).toEqual([0, 1])
      await example.limiter.reset({ id: "alice" })
      expect(await example.ask(HOUR)).toBe(1)
    })
  })
})
