import { describe, expect, it, onTestFinished } from "vitest"
import { manualClock } from "../packages/core/src/clock.ts"
import { ClosedError, InvalidRuleError, RuleSourceError } from "../packages/core/src/errors.ts"
import { createLimiter } from "../packages/core/src/http/request-limiter.ts"
import { createRuleBook } from "../packages/core/src/rules/open-book.ts"
import type { RuleBook } from "../packages/core/src/rules/rule-book.ts"
import { rule, type Stored, settled, TableSource } from "./rule-book/hand-made-source.ts"

const POLL_MS = 30_000
const QUIET = { warn() {}, error() {} }

async function setUp(
  services: "asked" | "all",
  stored: Readonly<Record<string, Stored>>,
  maxUnknown = 10_000,
) {
  const clock = manualClock()
  const source = new TableSource(stored, POLL_MS)
  const book = createRuleBook({ source, services, maxUnknown, clock, logger: QUIET, random: () => 0 })
  onTestFinished(() => book.close())
  const errors: (string | undefined)[] = []
  book.on("rule-error", (_error, service) => errors.push(service))
  const news: string[] = []
  book.on("rules", ({ service, change }) => news.push(`${service} ${change}`))
  const advance = async (ms: number) => {
    clock.advance(ms)
    await settled()
  }
  await settled()
  return { clock, source, book, errors, news, advance }
}

/** Asks for a name, and again when it had time to be looked up. */
async function ask(book: RuleBook, service: string): Promise<unknown[]> {
  const first = book.rulesOf(service)
  await settled()
  return [first?.rules[0]?.limit, book.rulesOf(service)?.rules[0]?.limit]
}

const ONE: Readonly<Record<string, Stored>> = { known: { rules: [rule(5)], version: 1 } }

describe.each(["asked", "all"] as const)("a name that is not known, with services %s", (services) => {
  it("is asked for once in a poll interval, however often it is read", async () => {
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

  it("is no news, unless there are rules", async () => {
    const { book, news, source } = await setUp(services, {})
    await ask(book, "nobody")
    source.stored.set("new", ONE.known as Stored)
    expect(await ask(book, "new")).toEqual([undefined, 5])
    expect(news).toEqual(["new loaded"])
    expect(book.statusOf("new")).toMatchObject({ version: 1, ageMs: 0 })
  })

  it("keeps its rules in force while it is asked for again, and loses them when they are gone", async () => {
    const { book, source, advance, news, clock } = await setUp(services, {})
    source.stored.set("new", ONE.known as Stored)
    await ask(book, "new")
    // Not in the list, as if for every service that has none of its own.
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

  it("is asked for anew when a refresh or the source says that something changed", async () => {
    const { book, source } = await setUp(services, {})
    await ask(book, "new")
    source.stored.set("new", ONE.known as Stored)
    expect(await ask(book, "new")).toEqual([undefined, undefined])
    await book.refresh({ service: "new" })
    expect(book.rulesOf("new")?.rules[0]?.limit).toBe(5)
    source.stored.set("new", { rules: [rule(9)] })
    await book.refresh()
    await ask(book, "new")
    expect((await book.find("new"))?.rules[0]?.limit).toBe(9)
  })

  it("is found by who waits, and read only once for all who do", async () => {
    const { book, source } = await setUp(services, {})
    source.stored.set("new", ONE.known as Stored)
    const found = await Promise.all([book.find("new"), book.find("new"), book.find("nobody")])
    expect(found.map((edition) => edition?.rules[0]?.limit)).toEqual([5, 5, undefined])
    expect(source.asked).toEqual(["new", "nobody"])
  })

  it("cannot be found while the source fails, which is told once for all names; known ones stay", async () => {
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

  it("whose rules are all wrong is told once for each document", async () => {
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

  it("is followed from then on when a limiter is made for it, with the rules that are known", async () => {
    const { book, source, clock } = await setUp(services, {})
    source.stored.set("new", ONE.known as Stored)
    await ask(book, "new")
    source.gate = () => new Promise(() => {})
    const limiter = createLimiter({ rules: book, service: "new", clock, logger: QUIET })
    expect(await limiter.peek({})).toMatchObject({ limit: 5 })
    await limiter.close()
  })

  it("of any length costs no read beyond what a key can have", async () => {
    const { book, source } = await setUp(services, {})
    for (const length of [2_048, 2_049, 1_000_000]) await ask(book, "x".repeat(length))
    expect(source.asked.map((name) => name.length)).toEqual([2_048])
    expect(await book.find("x".repeat(3_000))).toBeUndefined()
  })

  it("that breaks Unicode is one name all the same", async () => {
    const { book, source } = await setUp(services, {})
    for (let times = 0; times < 3; times++) await ask(book, "\ud800")
    expect(source.asked).toEqual(["\ud800"])
  })

  it("is given up with its signal, and when the book is closed", async () => {
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
    const asked = source.asked.length
    expect(book.rulesOf("c")).toBeUndefined()
    expect(source.asked).toHaveLength(asked)
  })
})

describe("strangers who make names up", () => {
  it("cause sixteen reads at a time, and a thousand in a poll interval", async () => {
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

  it("are forgotten but for the latest, so that memory does not grow; who is asked for stays", async () => {
    const { book, source } = await setUp("all", {}, 10)
    source.stored.set("friend", ONE.known as Stored)
    await ask(book, "friend")
    for (let name = 0; name < 50; name++) {
      await ask(book, `a${name}`)
      expect(book.rulesOf("friend")?.rules[0]?.limit).toBe(5)
    }
    expect(source.asked).toHaveLength(51)
    // The nine latest are remembered beside it; an earlier one is read again.
    for (let name = 49; name > 40; name--) await ask(book, `a${name}`)
    expect(source.asked).toHaveLength(51)
    await ask(book, "a0")
    expect(source.asked).toHaveLength(52)
  })

  it("cause no read before the first list is there", async () => {
    const clock = manualClock()
    const source = new TableSource(ONE, POLL_MS)
    source.gate = () => clock.wait(100)
    const book = createRuleBook({ source, services: "all", clock, logger: QUIET })
    onTestFinished(() => book.close())
    expect(book.rulesOf("known")).toBeUndefined()
    const found = [book.find("known"), book.find("known", { signal: new AbortController().signal })]
    clock.advance(100)
    for (const each of found) expect((await each)?.rules).toHaveLength(1)
    expect(source.asked).toEqual([])
  })
})

describe("a decision", () => {
  it("reads nothing: ten thousand of them cost no load", async () => {
    const { book, source, clock } = await setUp("asked", ONE)
    const options = { service: "known", clock, logger: QUIET }
    const limiters = [
      createLimiter({ ...options, rules: book }),
      createLimiter({ ...options, rules: source }),
    ]
    for (const limiter of limiters) await limiter.ready()
    const before = source.asked.length
    for (let times = 0; times < 10_000; times++) {
      for (const limiter of limiters) await limiter.decide({})
      book.rulesOf("known")
    }
    expect([before, source.asked.length]).toEqual([2, 2])
    for (const limiter of limiters) await limiter.close()
  })
})
