import {
  createLimiter,
  type Decision,
  type Limiter,
  manualClock,
  memoryStore,
  type StorableRule,
  type Store,
} from "@sluice/core"
import { redisStore } from "@sluice/core/redis"
import { Redis } from "ioredis"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "./servers/redis-server.ts"

/** The usual textbook examples of rate limiting, each with the answer from the text. */

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const START_MS = Date.UTC(2024, 0, 1)

let server: RedisServer
let client: Redis
beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port, server.host)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

const opened: Store[] = []
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
})

/** A limiter and its clock, which starts at 0:00. */
class Story {
  readonly #clock = manualClock(START_MS)
  readonly limiter: Limiter<{ readonly id: string }>
  #told: Decision | undefined

  constructor(where: "memory" | "Redis", ...rules: StorableRule[]) {
    const clock = this.#clock
    const store =
      where === "memory" ? memoryStore({ clock }) : redisStore({ client, clock, timeoutMs: 20_000 })
    opened.push(store)
    this.limiter = createLimiter<{ readonly id: string }>({
      rules: rules.map((rule) => ({ field: "user_id", ...rule })),
      fields: { user_id: ({ id }) => id },
      service: `textbook ${expect.getState().currentTestName}`,
      store,
      storeTimeoutMs: 20_000,
      clock,
    })
  }

  /** The decision on the last request. */
  get told(): Decision {
    return this.#told as Decision
  }

  /** Sends requests one after the other at that time. Returns how many are admitted. */
  async ask(atMs: number, requests = 1, id = "alice"): Promise<number> {
    this.#clock.set(START_MS + atMs)
    let admitted = 0
    for (let i = 0; i < requests; i++) {
      this.#told = await this.limiter.decide({ id })
      if (this.#told.allowed) admitted++
    }
    return admitted
  }

  /** Returns the units in use at that time, without making a request. */
  async before(atMs: number, id = "alice"): Promise<number> {
    this.#clock.set(START_MS + atMs)
    const { limit, remaining } = await this.limiter.peek({ id })
    return limit - remaining
  }
}

/** Returns the milliseconds of "2:25", in hours and minutes. */
function at(text: string): number {
  const [hours, minutes] = text.split(":").map(Number) as [number, number]
  return hours * HOUR + minutes * MINUTE
}

// A Redis key expires by the server's own clock. Windows of a second are therefore tested in memory, where time stands
// still.
describe("textbook cases, in memory", () => {
  it("limits of 15 a second and 15 a minute differ: one admits 900 requests a minute, the other 15", async () => {
    const perSecond: StorableRule = { limit: 15, window: "1 second" }
    const perMinute: StorableRule = { limit: 15, window: "1 minute" }
    const askEachSecond = async (...rules: StorableRule[]) => {
      const story = new Story(
        "memory",
        ...rules.map((rule): StorableRule => ({ ...rule, algorithm: "fixed-window" })),
      )
      let admitted = 0
      for (let second = 0; second < 60; second++) admitted += await story.ask(second * SECOND, 20)
      return admitted
    }
    expect(await askEachSecond(perSecond)).toBe(900)
    expect(await askEachSecond(perMinute)).toBe(15)
    expect(await askEachSecond(perSecond, perMinute)).toBe(15)
  })

  it("requests at 300 and 400 ms count for a second in a rolling window, until 1,000 ms in a fixed window", async () => {
    const rule: StorableRule = { limit: 2, window: "1 second" }
    const rolling = new Story("memory", { ...rule, algorithm: "sliding-log" })
    expect([await rolling.ask(300), await rolling.ask(400), await rolling.ask(1_000)]).toEqual([1, 1, 0])
    // Both ends of the second count.
    expect(rolling.told.retryAfterMs).toBe(301)
    expect([await rolling.ask(1_300), await rolling.ask(1_301, 2), await rolling.ask(1_401)]).toEqual([
      0, 1, 1,
    ])

    const fixed = new Story("memory", { ...rule, algorithm: "fixed-window" })
    expect([await fixed.ask(300), await fixed.ask(400), await fixed.ask(999)]).toEqual([1, 1, 0])
    expect(fixed.told.retryAfterMs).toBe(1)
    expect(await fixed.ask(1_000, 3)).toBe(2)
  })
})

describe.each(["memory", "Redis"] as const)("textbook cases, in %s", (where) => {
  it("the log at 2:25 counts from 1:25 to 2:25, both included", async () => {
    const story = new Story(where, { limit: 2, window: "1 hour", algorithm: "sliding-log" })
    expect([await story.ask(at("1:25")), await story.ask(at("1:50")), await story.ask(at("2:25"))]).toEqual([
      1, 1, 0,
    ])
    expect(story.told.retryAfterMs).toBe(1)
    expect(await story.ask(at("2:25") + 1)).toBe(1)
    // From 1:50 on, two requests are in the window again.
    expect([await story.ask(at("2:50")), await story.ask(at("2:50") + 1)]).toEqual([0, 1])
  })

  it.each([
    ["fixed-window", 8],
    // Five of the seven still count, because three quarters of that hour are in the window.
    ["sliding-window", 5],
    ["sliding-window-strict", 3],
    ["sliding-log", 3],
  ] as const)(
    "with a limit of 10 an hour and 7 requests at 1:30, %s admits %i of 8 requests at 2:15",
    async (algorithm, admitted) => {
      const story = new Story(where, { limit: 10, window: "1 hour", algorithm })
      expect(await story.ask(at("1:30"), 7)).toBe(7)
      expect(await story.ask(at("2:15"), 8)).toBe(admitted)
    },
  )

  it("10 requests in the previous minute and 2 in this minute count as 3 at its 54th second", async () => {
    const story = new Story(where, { limit: 10, window: "1 minute" })
    expect(await story.ask(30 * SECOND, 10)).toBe(10)
    // At the 50th second, 10 * 10 / 60 of the earlier requests count, so both new ones are admitted.
    expect(await story.ask(MINUTE + 50 * SECOND, 2)).toBe(2)
    expect(await story.before(MINUTE + 54 * SECOND)).toBe(3)
    expect(await story.ask(MINUTE + 54 * SECOND)).toBe(1)
    expect(story.told).toMatchObject({ limit: 10, remaining: 6 })
  })

  it.each([3, 60])(
    "10, 20 and 30 requests in an hour of %i parts: at 2:50 only the 30 count",
    async (buckets) => {
      // The hour before 2:50 begins at 1:50. It contains only the 30 requests of 2:00 to 2:20.
      const story = new Story(where, { limit: 100, window: "1 hour", buckets })
      expect([
        await story.ask(at("1:05"), 10),
        await story.ask(at("1:25"), 20),
        await story.ask(at("2:05"), 30),
      ]).toEqual([10, 20, 30])
      expect(await story.before(at("2:50"))).toBe(30)
      expect(await story.ask(at("2:50"))).toBe(1)
      expect(story.told.remaining).toBe(100 - 31)
    },
  )

  it("an hour of three parts weights the oldest part by the share that is still in the hour", async () => {
    // At 2:50, the hour begins in the middle of the part from 1:40 to 2:00.
    const story = new Story(where, { limit: 100, window: "1 hour", buckets: 3 })
    for (const [time, requests] of [
      ["1:45", 10],
      ["2:05", 20],
      ["2:25", 30],
    ] as const) {
      expect(await story.ask(at(time), requests)).toBe(requests)
    }
    expect(await story.before(at("2:50"))).toBe(5 + 20 + 30)
  })

  it("a bucket of 3 units gets 2 units at once every minute", async () => {
    const rule: StorableRule = {
      limit: 2,
      window: "1 minute",
      algorithm: "token-bucket",
      burst: 3,
      refill: "periodic",
    }
    const story = new Story(where, rule)
    expect(await story.ask(10 * SECOND, 4)).toBe(3)
    expect(story.told.retryAfterMs).toBe(50 * SECOND)
    expect(await story.ask(MINUTE - 1)).toBe(0)
    expect(await story.ask(MINUTE, 3)).toBe(2)
    // Five minutes add no more than fits.
    expect(await story.ask(6 * MINUTE, 4)).toBe(3)
  })

  it("a bucket of 3 units gets 2 units a minute, evenly", async () => {
    const story = new Story(where, { limit: 2, window: "1 minute", algorithm: "token-bucket", burst: 3 })
    expect(await story.ask(10 * SECOND, 4)).toBe(3)
    expect(story.told.retryAfterMs).toBe(30 * SECOND)
    expect([await story.ask(40 * SECOND - 1), await story.ask(40 * SECOND, 2)]).toEqual([0, 1])
    expect(await story.ask(6 * MINUTE, 4)).toBe(3)
  })

  it("the log of an abusive client has one entry for each admitted request, however often it asks", async () => {
    const story = new Story(where, { limit: 20, window: "1 hour", algorithm: "sliding-log" })
    const lengths: number[] = []
    for (let minute = 0; minute < 180; minute++) {
      await story.ask(minute * MINUTE, 10)
      lengths.push(story.told.checks[0]?.counts?.parts?.length ?? 0)
    }
    // One digit, and for each entry four digits of the time within an hour and one digit of its units.
    expect(Math.max(...lengths)).toBeLessThanOrEqual(1 + 20 * (4 + 1))
    expect(await story.before(179 * MINUTE)).toBe(20)
  })

  it("a client that asks every second gets 2 units a minute, and with countRejected none until it pauses", async () => {
    const rule: StorableRule = {
      limit: 2,
      window: "1 minute",
      algorithm: "sliding-window-strict",
      buckets: 6,
    }
    const admittedIn = async (story: Story, minutes: number) => {
      let admitted = 0
      for (let second = 0; second < minutes * 60; second++) admitted += await story.ask(second * SECOND)
      return admitted
    }
    // Ten seconds are added to each minute, because the units of a part of the window stay until the whole part has
    // passed.
    expect(await admittedIn(new Story(where, rule), 7)).toBe(12)
    const counting = new Story(where, { ...rule, name: "counting", countRejected: true })
    expect(await admittedIn(counting, 7)).toBe(2)
    expect(counting.told.retryAfterMs).toBeGreaterThan(0)
    // It pauses for the time that it was given, and is let in.
    expect(await counting.ask(7 * MINUTE - SECOND + counting.told.retryAfterMs)).toBe(1)
  })

  it("a client that is refused 20 times in a minute is blocked for an hour, and a reset unblocks it", async () => {
    const penalty = { refusals: 20, within: "1 minute", for: "1 hour" }
    const story = new Story(where, { limit: 5, window: "1 minute", penalty })
    expect(await story.ask(0, 24)).toBe(5)
    expect(story.told).toMatchObject({ refusal: "quota" })
    expect(await story.ask(SECOND)).toBe(0)
    expect(story.told).toMatchObject({ refusal: "penalty", retryAfterMs: HOUR })
    expect([await story.ask(HOUR), await story.ask(HOUR, 1, "bob")]).toEqual([0, 1])
    await story.limiter.reset({ id: "alice" })
    expect(await story.ask(HOUR)).toBe(1)
  })
})
