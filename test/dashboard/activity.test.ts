import {
  createLimiter,
  decideAll,
  type Limiter,
  memoryStore,
  type Rule,
  type Store,
  StoreUnavailableError,
} from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { type Activity, mergeActivity, type RuleOverview, recordActivity } from "@sluice/dashboard"
import { liveRules } from "@sluice/rules"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { expectBounds } from "./expect-bounds.ts"
import { addressOf, REQUESTS, TRAFFIC, total } from "./traffic.ts"

const MINUTE = 60_000
const START = 1_750_000_200_000 // the beginning of a slot
const CALLS: Rule = { name: "calls", field: "ip", limit: 3, window: "1 minute" }

function open(rules: readonly Rule[] = [CALLS], more: object = {}) {
  const clock = manualClock(START)
  const limiter = createLimiter({ service: "shop", rules, clock, logger: { warn() {}, error() {} }, ...more })
  const activity = recordActivity(limiter, { clock })
  const decide = async (times: number, remoteAddress = "192.0.2.1", cost = 1): Promise<void> => {
    for (let i = 0; i < times; i++) await limiter.decide({ remoteAddress }, { cost })
  }
  return { clock, limiter, activity, decide }
}

/** Returns a memory store that rejects requests while `isGone` returns true. */
function failingStore(isGone: () => boolean): Store {
  const store: Store = memoryStore()
  const take: Store["take"] = (...asked) => {
    if (isGone()) throw new StoreUnavailableError("gone")
    return store.take(...asked)
  }
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = name === "take" ? take : Reflect.get(target, name, target)
      return typeof member === "function" ? member.bind(target) : member
    },
  })
}

function rulesOf(activity: Activity): readonly RuleOverview[] {
  return activity.overview().services.flatMap(({ rules }) => rules)
}

describe("the activity of a limiter", () => {
  it("counts the outcomes of each rule, and lists who is refused, how often, why and until when", async () => {
    const { clock, activity, decide } = open()
    await decide(5)
    clock.advance(1_500)
    await decide(1, "192.0.2.2")
    await decide(1)
    const [rule] = rulesOf(activity)
    expect(rule).toMatchObject({
      rule: "calls",
      seconds: { admitted: [3, 1], refused: [2, 1] },
      slots: { admitted: [4], refused: [3] },
      refusedClients: 1,
      refused: [{ key: "192.0.2.1", refusals: 3, error: 0, reason: "quota", lastMs: START + 1_500 }],
    })
    const { untilMs } = rule?.refused[0] ?? {}
    expect(untilMs).toBeGreaterThan(START + 1_500)
    // The client is really admitted at this time, and not a millisecond earlier.
    const { limiter } = open()
    for (let i = 0; i < 3; i++) await limiter.decide({ remoteAddress: "192.0.2.1" })
    expect((await limiter.decide({ remoteAddress: "192.0.2.1" })).retryAfterMs).toBe(
      (untilMs as number) - START,
    )
  })

  it("returns the latest refusals first, each with its sentence", async () => {
    const { clock, activity, decide } = open()
    await decide(4)
    clock.advance(10)
    await decide(1)
    const [service] = activity.overview().services
    expect(service?.refusals).toMatchObject([
      { atMs: START + 10, rule: "calls", key: "192.0.2.1", reason: "quota" },
      { atMs: START, rule: "calls", key: "192.0.2.1", reason: "quota" },
    ])
    expect(service?.refusals[0]?.text).toContain("calls refused the request: 3 of 3 units are used")
  })

  it("keeps the last 200 refusals", async () => {
    const { clock, activity, decide } = open()
    for (let i = 0; i < 260; i++) {
      clock.advance(1)
      await decide(1, "192.0.2.1", 4)
    }
    const times = activity.overview().services[0]?.refusals.map(({ atMs }) => atMs - START)
    expect(times).toEqual(Array.from({ length: 200 }, (_, i) => 260 - i))
  })

  it("tells shadowed, admitted above the limit and degraded from the rest", async () => {
    let isGone = false
    const failing = failingStore(() => isGone)
    const rules: Rule[] = [
      { ...CALLS, name: "trial", limit: 1, shadow: true },
      { ...CALLS, name: "soft", limit: 2, throttle: { kind: "soft", percent: 50 } },
    ]
    const { activity, decide } = open(rules, { store: failing })
    await decide(4)
    isGone = true
    await decide(1, "192.0.2.9")
    expect(rulesOf(activity)).toMatchObject([
      {
        rule: "trial",
        shadow: true,
        seconds: { admitted: [2], shadowed: [3], degraded: [1] },
        refused: [{ key: "192.0.2.1", refusals: 3 }],
      },
      {
        rule: "soft",
        shadow: false,
        seconds: { admitted: [3], overLimit: [1], refused: [1], degraded: [1] },
      },
    ])
  })

  it("counts each step of other calls once: acquire, takeUpTo and decisions of a group", async () => {
    const { activity, limiter } = open()
    const client = { remoteAddress: "192.0.2.1" }
    await limiter.acquire(client)
    await limiter.takeUpTo(client, 1)
    await limiter.peek(client)
    await limiter.enforce(client)
    await expect(limiter.enforce(client)).rejects.toThrow("calls")
    expect(rulesOf(activity)[0]?.seconds).toEqual({ admitted: [3], refused: [1] })
  })

  it("forgets a refused client after the slot that follows its last refusal", async () => {
    const { clock, activity, decide } = open()
    await decide(5)
    clock.advance(5 * MINUTE)
    await decide(4, "192.0.2.2")
    expect(rulesOf(activity)[0]).toMatchObject({
      refused: [{ key: "192.0.2.1", refusals: 2 }, { key: "192.0.2.2" }],
      refusedClients: 2,
      slots: { refused: [2, 1] },
    })
    clock.advance(5 * MINUTE)
    expect(rulesOf(activity)[0]).toMatchObject({ refused: [{ key: "192.0.2.2" }], refusedClients: 1 })
    clock.advance(5 * MINUTE)
    expect(rulesOf(activity)[0]).toMatchObject({
      refused: [],
      refusedClients: 0,
      slots: { refused: [2, 1, 0, 0] },
    })
  })

  it("lists each client under the rule that refuses it, whichever rules apply to a request", async () => {
    const { activity, limiter } = open([
      { name: "posts", field: "header:x-user", limit: 1, window: "1 minute", match: { methods: ["POST"] } },
      { ...CALLS, limit: 2 },
    ])
    const post = { remoteAddress: "192.0.2.1", method: "POST", headers: { "x-user": "bob" } }
    const other = { ...post, headers: { "x-user": "amy" } }
    const get = { remoteAddress: "192.0.2.1", method: "GET" }
    for (const request of [post, get, post, other, get]) await limiter.decide(request)
    expect(rulesOf(activity)).toMatchObject([
      {
        rule: "posts",
        seconds: { admitted: [2], refused: [1] },
        refused: [{ key: "bob", refusals: 1 }],
      },
      {
        rule: "calls",
        seconds: { admitted: [2], refused: [3] },
        refused: [{ key: "192.0.2.1", refusals: 3 }],
      },
    ])
    const last = activity.overview().services[0]?.refusals.map(({ rule, key, text }) => [rule, key, text])
    expect(last).toEqual([
      ["calls", "192.0.2.1", expect.stringMatching(/^calls refused/)],
      ["calls", "192.0.2.1", expect.stringMatching(/^calls refused/)],
      ["posts", "bob", expect.stringMatching(/^posts refused/)],
    ])
  })

  it("lists the latest reason of a client, and counts a refusal without the store as degraded", async () => {
    const { clock, activity, limiter, decide } = open()
    await decide(4)
    await limiter.block({ remoteAddress: "192.0.2.1" }, { for: "1 hour" })
    for (const advance of [0, 5 * MINUTE]) {
      clock.advance(advance)
      await decide(1)
      expect(rulesOf(activity)[0]?.refused).toMatchObject([{ reason: "blocked", lastMs: clock.now() }])
    }
    const closed = open([{ ...CALLS, onStoreFailure: "deny" }], { store: failingStore(() => true) })
    await closed.decide(1)
    expect(rulesOf(closed.activity)[0]?.seconds).toEqual({ refused: [1], degraded: [1] })
  })

  it("lists nobody after a long pause", async () => {
    const { clock, activity, decide } = open()
    await decide(5)
    clock.advance(15 * MINUTE)
    await decide(1, "192.0.2.2")
    expect(rulesOf(activity)[0]).toMatchObject({
      refused: [],
      refusedClients: 0,
      slots: { refused: [2, 0, 0, 0] },
    })
  })

  it("lists many clients without an error, also in the slot that follows", async () => {
    const { clock, activity, decide } = open([{ ...CALLS, limit: 1 }])
    for (let i = 0; i < 100; i++) await decide(6, `10.0.0.${i}`)
    clock.advance(5 * MINUTE)
    await decide(2, "192.0.2.1")
    const { refused = [] } = rulesOf(activity)[0] ?? {}
    expect(refused.map(({ refusals, error }) => [refusals, error])).toEqual([
      ...Array(100).fill([5, 0]),
      [1, 0],
    ])
  })

  it("takes no client for busy because many clients send few requests each", async () => {
    const { activity, decide } = open()
    for (let i = 0; i < 20_000; i++) {
      await decide(1, addressOf(i % 10_000))
      if (i % 10 === 0) await decide(1, "192.0.2.1")
    }
    const [first, second] = rulesOf(activity)[0]?.busy ?? []
    expect(first?.key).toBe("192.0.2.1")
    expect(first?.requests).toBeGreaterThan(2_000 / 1.5)
    expect(first?.requests).toBeLessThan(2_000 * 1.5)
    expect(second?.requests).toBeLessThan(200)
  })

  it("estimates the busiest clients from a sample", async () => {
    const { activity, decide } = open([{ ...CALLS, limit: 1_000_000 }])
    for (let i = 0; i < 400; i++) {
      await decide(9, "192.0.2.1")
      await decide(1, `10.0.0.${i % 250}`)
    }
    const [first, second] = rulesOf(activity)[0]?.busy ?? []
    expect(first?.key).toBe("192.0.2.1")
    expect(first?.requests).toBeGreaterThan(3_600 / 1.5)
    expect(first?.requests).toBeLessThan(3_600 * 1.5)
    expect(second?.requests).toBeLessThan(200)
  })

  it("records rules beyond the 200th together, and the first 200 by their names", async () => {
    const posts: Rule = { ...CALLS, name: "posts", match: { methods: ["POST"] } }
    const rules = [posts, ...Array.from({ length: 209 }, (_, i) => ({ ...CALLS, name: `rule-${i}` }))]
    const { activity, limiter, decide } = open(rules)
    await limiter.decide({ remoteAddress: "192.0.2.1", method: "POST" })
    await decide(1)
    const recorded = rulesOf(activity)
    expect(recorded).toHaveLength(201)
    expect(recorded[1]).toMatchObject({ rule: "rule-0", seconds: { admitted: [2] } })
    expect(recorded.at(-1)).toMatchObject({ rule: "(others)", seconds: { admitted: [20] } })
  })

  it("records a new rule by its name if one of 200 rules has decided nothing for a day", async () => {
    const old = Array.from({ length: 200 }, (_, i) => ({
      ...CALLS,
      name: `old-${i}`,
      match: { path: "/old" },
    }))
    const { activity, clock, limiter } = open([...old, { ...CALLS, name: "new", match: { path: "/new" } }])
    const client = { remoteAddress: "192.0.2.1" }
    await limiter.decide({ ...client, url: "/old" })
    await limiter.decide({ ...client, url: "/new" })
    const names = () => rulesOf(activity).map(({ rule }) => rule)
    expect(names()).toHaveLength(201)
    expect(names().at(-1)).toBe("(others)")
    clock.advance("23 hours")
    await limiter.decide({ ...client, url: "/new" })
    expect(names().at(-1)).toBe("(others)")
    clock.advance("2 hours")
    await limiter.decide({ ...client, url: "/new" })
    await limiter.decide({ ...client, url: "/old" })
    expect(names().slice(0, 3)).toEqual(["(others)", "new", "old-0"])
  })

  it("contains the version and the problems of rules from a source", async () => {
    const problems = [{ path: "rules[1].limit", message: "is missing" }]
    const load = async () => ({ version: 7, rules: [CALLS], problems })
    const rules = liveRules({ load, pollMs: MINUTE })
    const { limiter, activity } = open([], { rules, onRulesMissing: "deny", clock: undefined })
    onTestFinished(async () => limiter.close())
    await limiter.ready()
    expect(activity.overview().services[0]?.instances[0]?.rulesStatus).toEqual({
      ...{ version: 7, loadedAtMs: expect.any(Number), isStale: false },
      problems: ["rules[1].limit: is missing"],
    })
  })

  it("lists a refusal before rules have been loaded, without a rule and a client", async () => {
    const clock = manualClock(START)
    const load = async () => Promise.reject(new Error("no table"))
    const rules = liveRules({ load, pollMs: 1_000 })
    const limiter = createLimiter({
      ...{ service: "shop", rules, onRulesMissing: "deny", clock },
      logger: { warn() {}, error() {} },
    })
    const activity = recordActivity(limiter, { clock })
    await limiter.decide({ remoteAddress: "192.0.2.1" })
    const [service] = activity.overview().services
    expect(service).toMatchObject({
      rules: [],
      refusals: [
        {
          rule: "",
          key: "",
          reason: "store-failure",
          text: expect.stringContaining("no rules have been loaded"),
        },
      ],
      instances: [{ rulesStatus: { problems: [expect.stringContaining("no table")] } }],
    })
    await limiter.close()
  })

  it("names no rule for a refusal by another request of the group", async () => {
    const store = memoryStore()
    const [one, other] = [
      open([CALLS], { store }),
      open([{ ...CALLS, limit: 1 }], { store, service: "maps" }),
    ]
    const request = { remoteAddress: "192.0.2.1" }
    for (let i = 0; i < 2; i++) {
      await decideAll([
        { limiter: one.limiter, request },
        { limiter: other.limiter, request },
      ])
    }
    expect(one.activity.overview().services[0]?.refusals).toMatchObject([
      {
        ...{ rule: "", key: "192.0.2.1", reason: "group" },
        text: "The request was refused, because another request of its group was refused",
      },
    ])
  })

  it("is not moved by a change of the system time", async () => {
    const { limiter, decide } = open()
    const startedMs = Date.now()
    const changed = vi.spyOn(Date, "now").mockReturnValue(startedMs - 60 * MINUTE)
    onTestFinished(() => changed.mockRestore())
    const activity = recordActivity(limiter)
    await decide(5)
    const { atMs, services } = activity.overview()
    for (const ms of [atMs, services[0]?.refusals[0]?.atMs, services[0]?.rules[0]?.refused[0]?.lastMs]) {
      expect(ms).toBeGreaterThan(startedMs - MINUTE)
      expect(Number.isInteger(ms)).toBe(true)
    }
  })

  it("records a limiter once that is given twice", async () => {
    const { limiter, clock, decide } = open()
    const activity = recordActivity([limiter, limiter], { clock })
    await decide(1)
    expect(rulesOf(activity)).toMatchObject([{ seconds: { admitted: [1] } }])
    expect(activity.snapshots()).toHaveLength(1)
  })

  it("contains what JSON can express, and survives it", async () => {
    const { activity, decide } = open([{ ...CALLS, deny: ["192.0.2.6"] }])
    await decide(5)
    await decide(1, "192.0.2.6")
    const overview = activity.overview()
    expect(JSON.parse(JSON.stringify(overview))).toEqual(overview)
    expect(
      overview.services[0]?.rules[0]?.refused.map(({ key, untilMs }) => [key, untilMs === null]),
    ).toEqual([
      ["192.0.2.1", false],
      ["192.0.2.6", true],
    ])
  })

  it("costs nothing after stop, and can still be read", async () => {
    const { activity, decide } = open()
    await decide(1)
    activity.stop()
    await decide(5)
    expect(rulesOf(activity)[0]?.seconds).toEqual({ admitted: [1] })
  })
})

describe("the overview of several processes", () => {
  /** Sends a request to one of the limiters at random, and returns the exact number of refusals of each client. */
  async function refuse(
    limiters: readonly Limiter[],
    clientOf: (nth: number) => string,
  ): Promise<Map<string, number>> {
    const exact = new Map<string, number>()
    for (let nth = 0; nth < REQUESTS; nth++) {
      const remoteAddress = clientOf(nth)
      const { allowed } = await (limiters[nth % limiters.length] as Limiter).decide({ remoteAddress })
      if (!allowed) exact.set(remoteAddress, (exact.get(remoteAddress) ?? 0) + 1)
    }
    return exact
  }

  it.each(Object.entries(TRAFFIC))(
    "bounds the true counts of %s over three limiters, and names the clients that are refused most",
    async (_what, clientOf) => {
      const clock = manualClock(START)
      const limiters = ["a", "b", "c"].map(() => {
        // Each limiter stands for a process.
        const store = memoryStore({ clock })
        const rules = [{ ...CALLS, limit: 1 }]
        return createLimiter({ rules, store, clock, service: "shop", logger: { warn() {}, error() {} } })
      })
      const activities = limiters.map((limiter) => recordActivity(limiter, { clock }))
      const exact = await refuse(limiters, clientOf)
      const { services } = mergeActivity(
        activities.flatMap((activity) => activity.snapshots()),
        clock.now(),
      )
      const [rule] = services[0]?.rules ?? []
      expect(rule?.seconds.refused).toEqual([total(exact.values())])
      expectBounds(rule, exact)
    },
  )

  it("lists each service with its own instances, and its last 200 refusals, latest first", async () => {
    const [a, b, other] = [open(), open(), open([{ ...CALLS, name: "other" }], { service: "maps" })]
    for (const { decide } of [a, b, other]) await decide(3)
    for (let i = 0; i < 250; i++) {
      for (const { clock } of [a, b]) clock.advance(1)
      await (i % 2 === 0 ? a : b).decide(1)
    }
    await other.decide(1)
    const snapshots = [a, b, other].flatMap(({ activity }) => activity.snapshots())
    const { services } = mergeActivity(snapshots, a.clock.now())
    expect(
      services.map(({ service, instances, rules }) => [service, instances.length, rules.length]),
    ).toEqual([
      ["maps", 1, 1],
      ["shop", 2, 1],
    ])
    const times = services[1]?.refusals.map(({ atMs }) => atMs - START)
    expect(times).toEqual(Array.from({ length: 200 }, (_, i) => 250 - i))
  })

  it.each([0, 1])(
    "lists the latest refusal of a client by several processes, the later one %d",
    async (later) => {
      const processes = [open(), open()]
      for (const [i, { clock, decide }] of processes.entries()) {
        clock.advance(i === later ? 20 : 10)
        await decide(4)
      }
      const snapshots = processes.flatMap(({ activity }) => activity.snapshots())
      // The snapshot of a process whose clock is ahead counts for the current second.
      const [service] = mergeActivity(snapshots, START - 1_000).services
      expect(service?.rules[0]?.refused).toMatchObject([{ refusals: 2, lastMs: START + 20 }])
      expect(service?.rules[0]?.seconds).toEqual({ admitted: [6], refused: [2] })
    },
  )

  it("adds up the same seconds and slots, even if a snapshot is some seconds older", async () => {
    const one = open()
    const other = open()
    for (const { decide } of [one, other]) await decide(4)
    const [early] = one.activity.snapshots()
    other.clock.advance(2_000)
    await other.decide(1, "192.0.2.2")
    const [late] = other.activity.snapshots()
    const { services } = mergeActivity(
      [early, late].flatMap((each) => each ?? []),
      START + 2_000,
    )
    expect(services).toMatchObject([
      {
        service: "shop",
        instances: [{ atMs: START }, { atMs: START + 2_000 }],
        rules: [
          {
            seconds: { admitted: [6, 0, 1], refused: [2, 0, 0] },
            refused: [{ key: "192.0.2.1", refusals: 2 }],
            refusedClients: 1,
          },
        ],
      },
    ])
  })
})
