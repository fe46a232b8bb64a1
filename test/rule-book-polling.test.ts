import { describe, expect, it, onTestFinished } from "vitest"
import { ClosedError, InvalidOptionError, RuleSourceError } from "../packages/core/src/ground/errors.ts"
import { manualClock } from "../packages/core/src/ground/manual-clock.ts"
import { createLimiter } from "../packages/core/src/limiter/create-limiter.ts"
import type { RulesEvent, StaleEvent } from "../packages/core/src/rules/live-rules.ts"
import { createRuleBook } from "../packages/rules/src/book/open-book.ts"
import { limiterOn, openBook, rule, type Stored, settled, TableSource } from "./rule-book/hand-made-source.ts"

const POLL_MS = 30_000

/** Creates a limiter of "checkout" on a book that polls a table. */
async function setUp(stored: Readonly<Record<string, Stored>>, random = 0, options: object = {}) {
  const clock = manualClock()
  const said: string[] = []
  const say = ({ code }: { readonly code: string }, message: string) => said.push(`${code} ${message}`)
  const logger = { warn: say, error: say }
  const source = new TableSource(stored, POLL_MS)
  const book = openBook({ source, clock, logger, random: () => random, ...options })
  const limiter = createLimiter({ rules: book, onRulesMissing: "allow", service: "checkout", clock, logger })
  const turns: RulesEvent[] = []
  const stale: [where: string, event: StaleEvent][] = []
  const errors: string[] = []
  limiter.on("rules", (event) => turns.push(event))
  limiter.on("rule-error", (error) => errors.push(error.message))
  limiter.on("rules-stale", (event) => stale.push(["limiter", event]))
  book.on("rules-stale", (event) => stale.push(["book", event]))
  onTestFinished(() => limiter.close())
  const advance = async (ms: number) => {
    clock.advance(ms)
    await settled()
  }
  const limit = async () => (await limiter.peek({})).limit
  await settled()
  return { clock, source, book, limiter, turns, stale, errors, said, advance, limit }
}

const ONE = { checkout: { rules: [rule(5)], version: 1 } }

describe("polling", () => {
  it.each([
    [0, 30_000],
    [0.5, 27_000],
    [0.999, 24_006],
  ])(
    "happens up to a fifth of the interval early, and never late: random %d, after %d ms",
    async (random, ms) => {
      const { source, advance, limit } = await setUp(ONE, random)
      source.stored.set("checkout", { rules: [rule(9)], version: 2 })
      await advance(ms - 1)
      expect([source.asked.length, await limit()]).toEqual([1, 5])
      await advance(1)
      expect([source.asked.length, await limit()]).toEqual([2, 9])
      await advance(ms)
      expect(source.asked).toHaveLength(3)
    },
  )

  it("measures the interval from the start of a load, not from its end", async () => {
    const { source, advance, clock } = await setUp(ONE)
    source.gate = () => clock.wait(5_000)
    await advance(POLL_MS)
    await advance(5_000)
    await advance(POLL_MS - 5_000)
    expect(source.asked).toHaveLength(3)
  })

  it("pauses between loads if a source is slower than the interval", async () => {
    const { source, advance, clock } = await setUp(ONE, 0, { pollMs: 1_000 })
    source.gate = () => clock.wait(5_000)
    await advance(1_000)
    await advance(5_000)
    expect(source.asked).toHaveLength(2)
    await advance(99)
    expect(source.asked).toHaveLength(2)
    await advance(1)
    expect(source.asked).toHaveLength(3)
  })

  it("emits no event if nothing has changed, and does not parse or compile the rules again", async () => {
    const { source, advance, turns, limiter } = await setUp(ONE)
    const before = (limiter as unknown as { ruleSet: object }).ruleSet
    for (let polls = 0; polls < 3; polls++) await advance(POLL_MS)
    expect(source.asked).toHaveLength(4)
    expect((limiter as unknown as { ruleSet: object }).ruleSet).toBe(before)
    expect(turns).toEqual([
      { service: "checkout", change: "loaded", names: ["rule"], version: 1, problems: [] },
    ])
  })

  it("emits an event when rules change, disappear and reappear", async () => {
    const { source, advance, turns } = await setUp(ONE)
    source.stored.set("checkout", { rules: [rule(9, { name: "b" })], version: 2 })
    await advance(POLL_MS)
    source.stored.delete("checkout")
    await advance(POLL_MS)
    source.stored.set("checkout", { rules: [], version: 3 })
    await advance(POLL_MS)
    expect(turns.map(({ change, names, version }) => [change, names, version])).toEqual([
      ["loaded", ["rule"], 1],
      ["changed", ["b"], 2],
      ["gone", [], undefined],
      ["loaded", [], 3],
    ])
  })

  it("clears the error without an event when a document gets its previous content back", async () => {
    const { source, advance, turns, errors, said, book } = await setUp(ONE)
    source.stored.set("checkout", { rules: [rule(0)] })
    for (let polls = 0; polls < 2; polls++) await advance(POLL_MS)
    expect(errors).toHaveLength(1)
    expect(said).toHaveLength(1)
    expect(said[0]).toContain('The previous rules stay in force: version 1 with the rule "rule".')
    expect(book.statusOf("checkout")).toMatchObject({ version: 1, error: { code: "SLUICE_INVALID_RULE" } })
    source.stored.set("checkout", ONE.checkout)
    await advance(POLL_MS)
    expect(book.statusOf("checkout").error).toBeUndefined()
    expect(turns).toHaveLength(1)
  })
})

describe("a rule book that loads services by name", () => {
  it("loads each service on its own schedule until its last limiter closes, and a failure affects no other service", async () => {
    const { book, source, clock, advance, limit } = await setUp({ ...ONE, search: { rules: [rule(7)] } })
    const [one, two] = [limiterOn(book, "search", clock), limiterOn(book, "search", clock)]
    await Promise.all([one.ready(), two.ready(), book.ready()])
    expect(source.asked).toEqual(["checkout", "search"])
    source.stored.set("checkout", { rules: [rule(0)] })
    source.stored.set("search", { rules: [rule(8)] })
    await advance(POLL_MS)
    expect([await limit(), (await one.peek({})).limit, (await two.peek({})).limit]).toEqual([5, 8, 8])
    expect(source.asked.filter((service) => service === "search")).toHaveLength(2)
    await one.close()
    await advance(POLL_MS)
    expect(source.asked.filter((service) => service === "search")).toHaveLength(3)
    await two.close()
    await two.close()
    await advance(POLL_MS)
    expect(source.asked.filter((service) => service === "search")).toHaveLength(3)
  })
})

describe("deeply equal rules", () => {
  it("of a source without stamps are not treated as changed, but new functions are", async () => {
    const { advance, turns, source } = await setUp(ONE)
    const load = source.load.bind(source)
    source.load = async (service) => {
      const { stamp: _stamp, ...loaded } = await load(service)
      return structuredClone(loaded)
    }
    for (let polls = 0; polls < 3; polls++) await advance(POLL_MS)
    // The change is reported only once, when the stamp disappears.
    expect(turns.map(({ change }) => change)).toEqual(["loaded", "changed"])
    source.load = async () => ({ rules: [rule(5, { limit: () => 5 } as object)], problems: [] })
    await advance(POLL_MS)
    expect(turns).toHaveLength(3)
  })
})

describe("refresh()", () => {
  it("resolves when the rules of a load that began after the call are in force", async () => {
    const { source, limiter, limit, advance, clock } = await setUp(ONE)
    source.gate = () => clock.wait(100)
    // By now, a pending load has already read the table.
    await advance(POLL_MS)
    source.stored.set("checkout", { rules: [rule(9)], version: 2 })
    let done = false
    const refreshed = limiter.refresh().then(() => {
      done = true
    })
    await settled()
    expect(source.asked).toHaveLength(3)
    source.gate = undefined
    await advance(100)
    await refreshed
    expect([done, await limit()]).toEqual([true, 9])
  })

  it("calls the source at most three times for many concurrent calls", async () => {
    const { source, book } = await setUp(ONE)
    const before = source.asked.length
    await Promise.all(Array.from({ length: 100 }, () => book.refresh()))
    expect(source.asked.length - before).toBeLessThanOrEqual(3)
  })

  it("rejects with the cause on every call, and keeps the previous rules in force", async () => {
    const { source, limiter, book, limit } = await setUp(ONE)
    source.failure = { error: new RuleSourceError("no such table"), page: 0 }
    await expect(limiter.refresh()).rejects.toThrow("no such table")
    await expect(book.refresh()).rejects.toThrow("no such table")
    await expect(book.refresh({ service: "checkout" })).rejects.toThrow("no such table")
    expect(await limit()).toBe(5)
  })

  it("rejects when its signal aborts or the book closes", async () => {
    const { source, limiter, book } = await setUp(ONE)
    source.gate = () => new Promise(() => {})
    const enough = new Error("enough")
    await expect(limiter.refresh({ signal: AbortSignal.abort(enough) })).rejects.toBe(enough)
    await expect(book.refresh({ signal: AbortSignal.abort(enough) })).rejects.toBe(enough)
    const aborting = new AbortController()
    const waiting = [limiter.refresh({ signal: aborting.signal }), book.refresh({ signal: aborting.signal })]
    aborting.abort(enough)
    for (const each of waiting) await expect(each).rejects.toBe(enough)
    const last = [limiter.refresh(), book.refresh()]
    book.close()
    for (const each of last) await expect(each).rejects.toThrow(ClosedError)
    await expect(book.refresh()).rejects.toThrow(ClosedError)
    await expect(limiter.refresh()).rejects.toThrow(ClosedError)
  })

  it("does nothing for rules in code", async () => {
    const limiter = createLimiter({ limit: 5, window: "1m", clock: manualClock() })
    await limiter.refresh()
    expect(limiter.rules).toEqual({ ageMs: 0, isStale: false, isRejected: false, problems: [] })
  })
})

describe("the age and version of rules", () => {
  it("are reported by the book and the limiter, and are updated by each successful load", async () => {
    const { clock, book, limiter, advance, source } = await setUp(ONE)
    const startedAtMs = clock.now()
    expect(book.statusOf("checkout")).toEqual({
      version: 1,
      loadedAtMs: startedAtMs,
      ageMs: 0,
      isStale: false,
      isRejected: false,
      problems: [],
    })
    await advance(29_999)
    expect(limiter.rules).toMatchObject({ version: 1, ageMs: 29_999, isStale: false })
    source.stored.set("checkout", { rules: [rule(5)], version: 2 })
    await advance(1)
    expect(limiter.rules).toMatchObject({ version: 2, loadedAtMs: startedAtMs + POLL_MS, ageMs: 0 })
    source.stored.set("checkout", { rules: [rule(5), { limit: 0 }], version: 3 })
    await advance(POLL_MS)
    expect(limiter.rules).toMatchObject({
      version: 2,
      loadedAtMs: startedAtMs + POLL_MS,
      ageMs: POLL_MS,
      isRejected: true,
      problems: [],
      error: { problems: [{ path: "rules[1].limit" }, { path: "rules[1].window" }] },
    })
  })

  it("are infinite and undefined for a service that was never loaded", async () => {
    const { book } = await setUp(ONE)
    expect(book.statusOf("nobody")).toEqual({
      ageMs: Number.POSITIVE_INFINITY,
      isStale: false,
      isRejected: false,
      problems: [],
    })
  })
})

describe("stale rules", () => {
  it("are reported once after three poll intervals, and again only after a successful load", async () => {
    const { source, advance, stale, said, limiter } = await setUp(ONE)
    source.failure = { error: new RuleSourceError("down"), page: 0 }
    await advance(POLL_MS)
    expect(limiter.rules).toMatchObject({ ageMs: 30_000, isStale: false, error: { message: "down" } })
    await advance(59_999)
    expect([stale, limiter.rules.isStale]).toEqual([[], false])
    await advance(1)
    expect(limiter.rules).toMatchObject({ ageMs: 90_000, isStale: true })
    const event = { service: "checkout", ageMs: 90_000 }
    expect(stale).toEqual([
      ["limiter", event],
      ["book", event],
    ])
    for (let times = 0; times < 10; times++) await advance(60_000)
    expect(stale).toHaveLength(2)
    expect(said.map((line) => line.slice(0, line.indexOf(" ")))).toEqual([
      "SLUICE_RULES_REJECTED",
      "SLUICE_RULES_STALE",
    ])
    expect(said[1]).toContain('the table, service "checkout": loading has failed for 90 s')

    source.failure = undefined
    await advance(30_000)
    expect(limiter.rules.isStale).toBe(false)
    source.failure = { error: new RuleSourceError("down"), page: 0 }
    await advance(POLL_MS)
    await advance(90_000)
    expect(stale).toHaveLength(4)
    expect(said).toHaveLength(5)
  })

  it("are not reported if loading succeeds again in time", async () => {
    const { source, advance, stale } = await setUp(ONE)
    source.failure = { error: new RuleSourceError("down"), page: 0 }
    await advance(POLL_MS)
    source.failure = undefined
    await advance(500)
    for (let times = 0; times < 10; times++) await advance(POLL_MS)
    expect(stale).toEqual([])
  })

  it("include rules that never loaded, whose age is the age of the book", async () => {
    const clock = manualClock()
    const source = new TableSource({}, POLL_MS)
    source.failure = { error: new RuleSourceError("down"), page: 0 }
    const book = openBook({ source, services: "all", staleAfterMs: 5_000, clock })
    const stale: StaleEvent[] = []
    book.on("rules-stale", (event) => stale.push(event))
    await settled()
    clock.advance(5_000)
    await settled()
    expect(stale).toEqual([{ ageMs: 5_000 }])
    expect(book.statusOf("any").ageMs).toBe(Number.POSITIVE_INFINITY)
  })

  it("of a source that is not polled are measured from the last change notification", async () => {
    const stale: StaleEvent[] = []
    const clock = manualClock()
    const watched = new TableSource(ONE)
    let change = () => {}
    const source = Object.assign(watched, { watch: (changed: () => void) => (change = changed) })
    const other = openBook({ source, clock })
    const limiter = limiterOn(other, "checkout", clock)
    other.on("rules-stale", (event) => stale.push(event))
    await settled()
    clock.advance(3_600_000)
    await settled()
    watched.failure = { error: new RuleSourceError("down"), page: 0 }
    change()
    await settled()
    clock.advance(89_999)
    await settled()
    expect([stale, limiter.rules.isStale]).toEqual([[], false])
    clock.advance(1)
    await settled()
    expect(stale).toEqual([{ service: "checkout", ageMs: 90_000 }])
    expect(limiter.rules.isStale).toBe(true)
  })
})

describe("the options of createRuleBook", () => {
  it.each([
    ["source", { source: {} }, "is not a rule source"],
    ["source", {}, "is missing"],
    ["services", { source: new TableSource(), services: "some" }, '"some" is not a valid value'],
    ["pollMs", { source: new TableSource(), pollMs: 0 }, "0 is not an interval"],
    ["staleAfterMs", { source: new TableSource(), staleAfterMs: 2 ** 31 }, "2147483648 is not an interval"],
    ["maxUnknown", { source: new TableSource(), maxUnknown: 0 }, "0 is not a valid number of names"],
    ["logger", { source: new TableSource(), logger: {} }, "{} is not a logger"],
    ["clock", { source: new TableSource(), clock: 5 }, "5 is not a clock"],
    ["random", { source: new TableSource(), random: 5 }, "5 is not a function"],
    ["poll", { source: new TableSource(), poll: 5 }, 'did you mean "pollMs"?'],
    ["source.pollMs", { source: new TableSource({}, -1) }, "-1 is not an interval"],
    [
      "services",
      { source: { load: async () => ({ rules: [], problems: [] }) }, services: "all" },
      '"all" cannot be used, because the rule source cannot list its services',
    ],
  ])("are rejected immediately if %s is invalid", (path, options, message) => {
    const problem = { path, message: expect.stringContaining(message) }
    expect(() => createRuleBook(options as never)).toThrow(InvalidOptionError)
    expect(() => createRuleBook(options as never)).toThrow(
      expect.objectContaining({ problems: [expect.objectContaining(problem)] }),
    )
  })

  it("may contain Date as the clock", () => {
    const book = createRuleBook({ source: new TableSource(), clock: Date })
    expect(book.name).toBe("the table")
    book.close()
  })
})

describe("rules that are valid again", () => {
  const codes = (said: readonly string[]) => said.map((line) => line.slice(0, line.indexOf(" ")))

  it("are reported once, even if they have been in force throughout", async () => {
    const { source, advance, said } = await setUp(ONE)
    source.failure = { error: new RuleSourceError("down"), page: 0 }
    await advance(POLL_MS)
    source.failure = undefined
    for (let times = 0; times < 3; times++) await advance(POLL_MS)
    expect(codes(said)).toEqual(["SLUICE_RULES_REJECTED", "SLUICE_RULES_RECOVERED"])
    expect(said[1]).toContain(
      'the table, service "checkout": the stored rules can be used again. In force now: version 1 with the rule "rule".',
    )
  })

  it("are reported when the last problem of a rejected version is fixed, but not before", async () => {
    const { source, advance, said, limit } = await setUp(ONE)
    const wrong = { ...rule(7), name: "wrong", window: "never" }
    source.stored.set("checkout", { rules: [rule(9), wrong], version: 2 })
    await advance(POLL_MS)
    source.failure = { error: new RuleSourceError("down"), page: 0 }
    await advance(POLL_MS)
    source.failure = undefined
    await advance(POLL_MS)
    const rejected = "SLUICE_RULES_REJECTED"
    // No rules were accepted for three polls, but the source responded to two of these polls.
    expect(codes(said)).toEqual([rejected, rejected, rejected])
    expect(await limit()).toBe(5)
    source.stored.set("checkout", { rules: [rule(9)], version: 3 })
    await advance(POLL_MS)
    expect(codes(said).slice(3)).toEqual(["SLUICE_RULES_RECOVERED"])
    expect(await limit()).toBe(9)
  })
})
