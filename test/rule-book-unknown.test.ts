import { describe, expect, it } from "vitest"
import { ClosedError, InvalidRuleError, RuleSourceError } from "../packages/core/src/ground/errors.ts"
import { manualClock } from "../packages/core/src/ground/manual-clock.ts"
import type { RuleBook } from "../packages/rules/src/rule-book.ts"
import type { RuleSource } from "../packages/rules/src/source.ts"
import {
  handSettledSource,
  limiterOn,
  openBook,
  rule,
  type Stored,
  settled,
  TableSource,
} from "./rule-book/hand-made-source.ts"

const POLL_MS = 30_000

async function setUp(
  services: "asked" | "all",
  stored: Readonly<Record<string, Stored>>,
  maxUnknown = 10_000,
) {
  const clock = manualClock()
  const source = new TableSource(stored, POLL_MS)
  const said: string[] = []
  const say = (_fields: object, message: string) => said.push(message)
  const book = openBook({ source, services, maxUnknown, clock, logger: { warn: say, error: say } })
  const errors: (string | undefined)[] = []
  book.on("rule-error", (_error, service) => errors.push(service))
  const news: string[] = []
  book.on("rules", ({ service, change }) => news.push(`${service} ${change}`))
  const advance = async (ms: number) => {
    clock.advance(ms)
    await settled()
  }
  await settled()
  return { clock, source, book, said, errors, news, advance }
}

/** Reads the rules of a service twice, and lets the book load them before the second read. */
async function ask(book: RuleBook, service: string): Promise<unknown[]> {
  const first = book.rulesOf(service)
  await settled()
  return [first?.rules[0]?.limit, book.rulesOf(service)?.rules[0]?.limit]
}

const ONE: Readonly<Record<string, Stored>> = { known: { rules: [rule(5)], version: 1 } }

describe.each(["asked", "all"] as const)("an unknown name, with services %s", (services) => {
  /** Opens a book on a source whose list is empty. */
  async function openOn(source: RuleSource, clock = manualClock()) {
    const listed = services === "asked" ? source : { ...source, async *loadAll() {} }
    const book = openBook({ source: listed, services, clock })
    await settled()
    return book
  }

  it("is requested once per poll interval, however often it is read", async () => {
    const { book, source, advance } = await setUp(services, {})
    for (let times = 0; times < 10_000; times++) expect(book.rulesOf("nobody")).toBeUndefined()
    await settled()
    expect(source.asked).toEqual(["nobody"])
    expect(await ask(book, "nobody")).toEqual([undefined, undefined])
    await advance(POLL_MS - 1)
    await ask(book, "nobody")
    expect(source.asked).toEqual(["nobody"])
    await advance(1)
    await ask(book, "nobody")
    expect(source.asked).toEqual(["nobody", "nobody"])
  })

  it("causes no event until it has rules", async () => {
    const { book, news, source } = await setUp(services, {})
    await ask(book, "nobody")
    source.stored.set("new", ONE.known as Stored)
    expect(await ask(book, "new")).toEqual([undefined, 5])
    expect(news).toEqual(["new loaded"])
    expect(book.statusOf("new")).toMatchObject({ version: 1, ageMs: 0 })
  })

  it("keeps its rules in force while they are loaded again, and loses them if the source has none", async () => {
    const { book, source, advance, news, clock } = await setUp(services, {})
    source.stored.set("new", ONE.known as Stored)
    await ask(book, "new")
    // The list lacks the service, as if these rules applied to every service without its own rules.
    source.loadAll = async function* () {}
    await advance(POLL_MS)
    source.gate = () => clock.wait(100)
    source.stored.set("new", { rules: [rule(9)] })
    expect(await ask(book, "new")).toEqual([5, 5])
    expect((await book.find("new"))?.rules[0]?.limit).toBe(5)
    await advance(100)
    expect(book.rulesOf("new")?.rules[0]?.limit).toBe(9)
    source.gate = undefined
    source.stored.delete("new")
    await advance(POLL_MS)
    expect(await ask(book, "new")).toEqual([9, undefined])
    expect(news).toEqual(["new loaded", "new changed", "new gone"])
  })

  it("is requested again after a refresh or a change notification from the source", async () => {
    const { book, source } = await setUp(services, {})
    await ask(book, "new")
    source.stored.set("new", ONE.known as Stored)
    expect(await ask(book, "new")).toEqual([undefined, undefined])
    await book.refresh({ service: "new" })
    expect(book.rulesOf("new")?.rules[0]?.limit).toBe(5)
    source.stored.set("new", { rules: [rule(9)] })
    await book.refresh()
    expect(book.rulesOf("new")?.rules[0]?.limit).toBe(9)
    expect(await book.find("later")).toBeUndefined()
    source.stored.set("later", ONE.known as Stored)
    source.loadAll = async function* () {}
    await book.refresh()
    expect((await book.find("later"))?.rules[0]?.limit).toBe(5)
  })

  it("is reloaded by a refresh if it has rules, at most sixteen names at a time", async () => {
    const { book, source } = await setUp(services, {})
    source.loadAll = async function* () {}
    const names = Array.from({ length: 20 }, (_, i) => `s${i}`)
    for (const name of names) source.stored.set(name, { rules: [rule(5)] })
    for (const name of names) await book.find(name)
    for (const name of names) source.stored.set(name, { rules: [rule(9)] })
    source.asked.length = 0
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    source.gate = () => released
    const refreshed = book.refresh()
    await settled()
    expect(source.asked).toHaveLength(16)
    // If a limiter starts to follow a service in the meantime, the refresh does not load its rules a second time.
    limiterOn(book, "s19")
    await settled()
    release()
    await refreshed
    expect(names.map((name) => book.rulesOf(name)?.rules[0]?.limit)).toEqual(names.map(() => 9))
    expect(source.asked.toSorted()).toEqual(names.toSorted())
    expect(source.fresh.filter(Boolean)).toHaveLength(19)
    source.asked.length = 0
    source.stored.set("s0", { rules: [rule(0)] })
    source.stored.set("s18", { rules: [rule(8)] })
    await expect(book.refresh()).rejects.toThrow(InvalidRuleError)
    expect([book.rulesOf("s0")?.rules[0]?.limit, book.rulesOf("s18")?.rules[0]?.limit]).toEqual([9, 8])
    source.asked.length = 0
    source.load = async (service) => {
      source.asked.push(service)
      throw new RuleSourceError("down")
    }
    await expect(book.refresh({ signal: new AbortController().signal })).rejects.toThrow("down")
    expect(source.asked.length).toBeLessThan(names.length)
  })

  it("makes find() reject until the source responds, and is requested again with backoff", async () => {
    const { book, source, advance } = await setUp(services, {})
    source.loadAll = async function* () {}
    source.failure = { error: new RuleSourceError("down"), page: -1 }
    source.stored.set("new", ONE.known as Stored)
    for (let times = 0; times < 3; times++) {
      await expect(book.find("new")).rejects.toThrow("down")
      expect(book.statusOf("new")).toMatchObject({ isStale: false, error: { message: "down" } })
    }
    expect(source.asked).toHaveLength(1)
    await advance(500)
    await expect(book.find("new")).rejects.toThrow("down")
    await advance(999)
    await expect(book.find("new")).rejects.toThrow("down")
    expect(source.asked).toHaveLength(2)
    source.failure = undefined
    await advance(1)
    expect((await book.find("new"))?.rules[0]?.limit).toBe(5)
    expect(book.statusOf("new").error).toBeUndefined()
    expect(source.asked).toHaveLength(3)
    await advance(POLL_MS - 1)
    await ask(book, "new")
    expect(source.asked).toHaveLength(3)
    source.failure = { error: new RuleSourceError("down"), page: -1 }
    await advance(1)
    await ask(book, "new")
    await advance(500)
    await ask(book, "new")
    expect(source.asked).toHaveLength(5)
  })

  it("is stale if loading has failed for a long time, and its rules stay in force", async () => {
    const { book, source, advance, said } = await setUp(services, {})
    source.stored.set("new", ONE.known as Stored)
    await book.find("new")
    source.loadAll = async function* () {}
    source.failure = { error: new RuleSourceError("down"), page: -1 }
    await advance(POLL_MS)
    await ask(book, "new")
    expect(book.statusOf("new")).toMatchObject({ version: 1, isStale: false, error: { message: "down" } })
    expect(said).toEqual([
      expect.stringMatching(/^the table, service "new": down\nThe previous rules stay in force: /),
    ])
    await advance(2 * POLL_MS - 1)
    expect(book.statusOf("new").isStale).toBe(false)
    await advance(1)
    expect(book.statusOf("new")).toMatchObject({ isStale: true, ageMs: 3 * POLL_MS })
    source.failure = undefined
    expect(await ask(book, "new")).toEqual([5, 5])
    expect(book.statusOf("new")).toMatchObject({ isStale: false, ageMs: 0 })
    await advance(4 * POLL_MS)
    expect(book.statusOf("new").isStale).toBe(false)
    expect(book.statusOf("new").error).toBeUndefined()
  })

  it("never lets an earlier load overwrite the result of a later load", async () => {
    const clock = manualClock()
    const { source, loads } = handSettledSource()
    const book = await openOn(source, clock)
    book.rulesOf("x")
    clock.advance(3)
    const refreshed = book.refresh({ service: "x" })
    clock.advance(7)
    expect(loads.map(({ fresh }) => fresh)).toEqual([false, true])
    loads[1]?.resolve({ rules: [rule(5)], problems: [], version: 2, stamp: "2" })
    await refreshed
    loads[0]?.resolve({ rules: [], problems: [] })
    await settled()
    expect(book.rulesOf("x")?.rules[0]?.limit).toBe(5)
    expect(book.statusOf("x")).toMatchObject({ version: 2, ageMs: 7 })
  })

  it("is requested again if it was read before the source reported a change", async () => {
    const { source, loads, change } = handSettledSource()
    const book = await openOn(source)
    const early = book.find("x")
    await settled()
    change()
    const late = book.find("x")
    await settled()
    expect(loads).toHaveLength(2)
    loads[0]?.resolve({ rules: [], problems: [] })
    await settled()
    expect(await Promise.race([late, "waiting"])).toBe("waiting")
    loads[1]?.resolve({ rules: [rule(5)], problems: [] })
    expect((await late)?.rules[0]?.limit).toBe(5)
    expect((await early)?.rules[0]?.limit).toBe(5)
    change()
    const failing = book.find("y")
    await settled()
    change()
    loads[2]?.reject(new RuleSourceError("down"))
    await expect(failing).rejects.toThrow("down")
    book.rulesOf("y")
    expect(loads).toHaveLength(4)
  })

  it("is loaded once for all concurrent callers", async () => {
    const { book, source } = await setUp(services, {})
    source.stored.set("new", ONE.known as Stored)
    const found = await Promise.all([book.find("new"), book.find("new"), book.find("nobody")])
    expect(found.map((edition) => edition?.rules[0]?.limit)).toEqual([5, 5, undefined])
    expect(source.asked).toEqual(["new", "nobody"])
  })

  it("cannot be found while the source fails; this is reported once, and known names keep their rules", async () => {
    const { book, source, errors, advance } = await setUp(services, {})
    source.stored.set("new", ONE.known as Stored)
    await ask(book, "new")
    source.loadAll = async function* () {}
    source.failure = { error: new RuleSourceError("down"), page: -1 }
    await advance(POLL_MS)
    await expect(book.find("other")).rejects.toThrow("down")
    expect(await ask(book, "new")).toEqual([5, 5])
    expect(await ask(book, "third")).toEqual([undefined, undefined])
    expect(errors).toEqual(["other"])
    source.failure = undefined
    await advance(POLL_MS)
    expect(await ask(book, "new")).toEqual([5, 5])
    source.failure = { error: new RuleSourceError("down"), page: -1 }
    await advance(POLL_MS)
    await ask(book, "new")
    expect(errors).toEqual(["other", "new"])
  })

  it("causes one report for each document without a valid rule", async () => {
    const { book, source, errors, advance } = await setUp(services, {})
    source.loadAll = async function* () {}
    source.stored.set("bad", { rules: [rule(0)] })
    for (let polls = 0; polls < 3; polls++) {
      await expect(book.find("bad").then(() => book.refresh({ service: "bad" }))).rejects.toThrow(
        InvalidRuleError,
      )
      await advance(POLL_MS)
    }
    expect(errors).toEqual(["bad"])
    source.stored.set("bad", { rules: [rule(-1)] })
    await ask(book, "bad")
    expect(errors).toEqual(["bad", "bad"])
  })

  it("is reported once when its rules are valid or readable again, even if it never had rules", async () => {
    const { book, source, said, advance } = await setUp(services, {})
    source.loadAll = async function* () {}
    source.stored.set("bad", { rules: [rule(0)] })
    await ask(book, "bad")
    expect(said).toEqual([
      expect.stringMatching(
        /"bad": the stored rules are rejected, .*\nWrong rules: .*\nNone of its rules are in force yet\./,
      ),
    ])
    source.stored.set("bad", { rules: [rule(5)] })
    await advance(POLL_MS)
    expect(await ask(book, "bad")).toEqual([undefined, 5])
    const recovered = (service: string, inForce: string) =>
      expect.stringContaining(
        `the table, service "${service}": the stored rules can be used again. In force now: ${inForce}.`,
      )
    expect(said.splice(0).slice(1)).toEqual([recovered("bad", 'the rule "rule"')])
    source.failure = { error: new RuleSourceError("down"), page: -1 }
    await ask(book, "nobody")
    expect(said).toEqual([expect.stringMatching(/"nobody": down\nNone of its rules are in force yet\./)])
    source.failure = undefined
    for (let polls = 0; polls < 2; polls++) {
      await advance(POLL_MS)
      await ask(book, "nobody")
    }
    expect(said.slice(1)).toEqual([recovered("nobody", "no rules, because none are stored")])
  })

  it("is followed when a limiter is created for it, starting with the known rules", async () => {
    const { book, source, clock } = await setUp(services, {})
    source.stored.set("new", ONE.known as Stored)
    await ask(book, "new")
    source.gate = () => new Promise(() => {})
    expect(await limiterOn(book, "new", clock).peek({})).toMatchObject({ limit: 5 })
  })

  it("is found even if a limiter is created for it and closed during the load", async () => {
    const { book, source, clock } = await setUp(services, {})
    source.stored.set("new", ONE.known as Stored)
    source.gate = () => new Promise(() => {})
    const found = book.find("new")
    await settled()
    const limiter = limiterOn(book, "new", clock)
    source.gate = undefined
    await limiter.close()
    expect((await found)?.rules[0]?.limit).toBe(5)
  })

  it("is not loaded if it is longer than the maximum key length", async () => {
    const { book, source } = await setUp(services, {})
    for (const length of [2_048, 2_049, 1_000_000]) await ask(book, "x".repeat(length))
    expect(source.asked.map((name) => name.length)).toEqual([2_048])
    expect(await book.find("x".repeat(3_000))).toBeUndefined()
  })

  it("is treated like any other name if it is not valid Unicode", async () => {
    const { book, source } = await setUp(services, {})
    for (let times = 0; times < 3; times++) await ask(book, "\ud800")
    expect(source.asked).toEqual(["\ud800"])
  })

  it("stops being loaded when the caller's signal aborts or the book closes", async () => {
    const { book, source } = await setUp(services, {})
    source.gate = () => new Promise(() => {})
    const aborting = new AbortController()
    const waiting = book.find("a", { signal: aborting.signal })
    await settled()
    aborting.abort(new Error("enough"))
    await expect(waiting).rejects.toThrow("enough")
    const other = book.find("b")
    await settled()
    book.close()
    await expect(other).rejects.toThrow(ClosedError)
    await expect(book.find("d")).rejects.toThrow(ClosedError)
    const asked = source.asked.length
    expect(book.rulesOf("c")).toBeUndefined()
    expect(source.asked).toHaveLength(asked)
  })
})

describe("clients that invent names", () => {
  it("cause at most sixteen concurrent reads, and a thousand reads per poll interval", async () => {
    const { book, source, advance } = await setUp("all", {})
    source.gate = () => new Promise((resolve) => setImmediate(resolve))
    for (let name = 0; name < 100; name++) book.rulesOf(`a${name}`)
    expect(source.asked).toHaveLength(16)
    for (let round = 0; round < 200; round++) {
      for (let name = 0; name < 20; name++) book.rulesOf(`b${round}-${name}`)
      await settled()
    }
    expect(source.asked).toHaveLength(1_000)
    expect(await book.find("c")).toBeUndefined()
    await advance(POLL_MS)
    await book.find("c")
    expect(source.asked).toHaveLength(1_001)
  })

  it("occupy a limited number of entries in the book, and do not evict names in use", async () => {
    const { book, source } = await setUp("all", {}, 10)
    source.stored.set("friend", ONE.known as Stored)
    await ask(book, "friend")
    for (let name = 0; name < 50; name++) {
      await ask(book, `a${name}`)
      expect(book.rulesOf("friend")?.rules[0]?.limit).toBe(5)
    }
    expect(source.asked).toHaveLength(51)
    // The book also remembers the nine latest names, but loads an earlier name again.
    for (let name = 49; name > 40; name--) await ask(book, `a${name}`)
    expect(source.asked).toHaveLength(51)
    await ask(book, "a0")
    expect(source.asked).toHaveLength(52)
  })

  it("neither prevent reloads of names that have rules, nor evict these names", async () => {
    const { book, source, advance } = await setUp("asked", {}, 20)
    for (let name = 0; name < 20; name++) {
      source.stored.set(`real${name}`, { rules: [rule(5)] })
      await book.find(`real${name}`)
    }
    for (let name = 0; name < 20; name++) source.stored.set(`real${name}`, { rules: [rule(9)] })
    await advance(POLL_MS)
    source.gate = () => new Promise(() => {})
    // All loads of unknown names hang, and more names are requested than the book remembers.
    for (let name = 0; name < 100; name++) book.rulesOf(`a${name}`)
    source.gate = undefined
    const limits = () => Array.from({ length: 19 }, (_, i) => book.rulesOf(`real${i + 1}`)?.rules[0]?.limit)
    expect(limits()).toEqual(Array.from({ length: 19 }, () => 5))
    expect(source.asked).toHaveLength(20 + 16 + 16)
    await settled()
    limits()
    await settled()
    expect(limits()).toEqual(Array.from({ length: 19 }, () => 9))
    // The latest unknown name has replaced the least recently used name.
    const asked = source.asked.length
    expect(book.rulesOf("real0")).toBeUndefined()
    expect(source.asked).toHaveLength(asked)
  })

  it("leave enough loads for names with rules after using up their own loads", async () => {
    const { book, source, advance } = await setUp("asked", { real: { rules: [rule(5)] } })
    await book.find("real")
    await advance(POLL_MS)
    for (let name = 0; name < 1_001; name++) {
      book.rulesOf(`a${name}`)
      if (name % 16 === 15) await settled()
    }
    expect(source.asked).toHaveLength(1_001)
    source.stored.set("real", { rules: [rule(9)] })
    expect(await ask(book, "real")).toEqual([5, 9])
  })

  it("lose their entry to a name that turns out to have rules, even if it was evicted during its load", async () => {
    const { book, source, clock } = await setUp("asked", { real: { rules: [rule(5)] } }, 1)
    source.gate = () => clock.wait(10)
    const found = [book.find("real"), book.find("nobody")]
    await settled()
    clock.advance(10)
    expect((await Promise.all(found)).map((edition) => edition?.rules[0]?.limit)).toEqual([5, undefined])
    expect(book.rulesOf("real")?.rules[0]?.limit).toBe(5)
    expect(source.asked).toEqual(["real", "nobody"])
  })

  it("cause no second event for an evicted service that a limiter now follows", async () => {
    const { book, source, clock, news } = await setUp("asked", { real: { rules: [rule(5)] } }, 1)
    source.gate = () => clock.wait(10)
    for (const name of ["real", "nobody"]) book.rulesOf(name)
    source.gate = undefined
    await limiterOn(book, "real", clock).ready()
    clock.advance(10)
    await settled()
    expect(news).toEqual(["real loaded"])
  })

  it("cause no read before the first listing has loaded", async () => {
    const clock = manualClock()
    const source = new TableSource(ONE, POLL_MS)
    source.gate = () => clock.wait(100)
    const book = openBook({ source, services: "all", clock })
    expect(book.rulesOf("known")).toBeUndefined()
    const found = [book.find("known"), book.find("known", { signal: new AbortController().signal })]
    clock.advance(100)
    for (const each of found) expect((await each)?.rules).toHaveLength(1)
    expect(source.asked).toEqual([])
  })
})

describe("a decision", () => {
  it("never causes a load of rules", async () => {
    const { book, source, clock } = await setUp("asked", ONE)
    const limiters = [limiterOn(book, "known", clock), limiterOn(source, "known", clock)]
    for (const limiter of limiters) await limiter.ready()
    const before = source.asked.length
    for (let times = 0; times < 10_000; times++) {
      for (const limiter of limiters) await limiter.decide({})
      book.rulesOf("known")
    }
    expect([before, source.asked.length]).toEqual([2, 2])
  })
})
