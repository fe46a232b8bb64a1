import { mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { InvalidRuleError, RuleSourceError } from "../packages/core/src/ground/errors.ts"
import { manualClock } from "../packages/core/src/ground/manual-clock.ts"
import type { RulesEvent } from "../packages/core/src/rules/live-rules.ts"
import { fileRules } from "../packages/rules/src/sources/file.ts"
import { limiterOn, openBook, rule, type Stored, settled, TableSource } from "./rule-book/hand-made-source.ts"

const POLL_MS = 30_000

/** Creates a book on all services of a table. By default, five services exist at the start. */
async function setUp(stored: Readonly<Record<string, Stored>> = FIVE) {
  const clock = manualClock()
  const said: string[] = []
  const say = (_fields: object, message: string) => said.push(message)
  const source = new TableSource(stored, POLL_MS)
  const book = openBook({ source, services: "all", clock, logger: { warn: say, error: say } })
  const turns: RulesEvent[] = []
  const errors: [message: string, service: string | undefined][] = []
  book.on("rules", (event) => turns.push(event))
  book.on("rule-error", (error, service) => errors.push([error.message, service]))
  const advance = async (ms: number) => {
    clock.advance(ms)
    await settled()
  }
  const limiterOf = (service: string) => limiterOn(book, service, clock)
  const limitOf = (service: string) => book.rulesOf(service)?.rules[0]?.limit
  await settled()
  return { clock, source, book, said, turns, errors, advance, limiterOf, limitOf }
}

const FIVE = Object.fromEntries(
  [1, 2, 3, 4, 5].map((limit): [string, Stored] => [`s${limit}`, { rules: [rule(limit)], version: limit }]),
)

describe("a rule book for all services", () => {
  it("contains all services and their versions after one listing, and requests no service by name", async () => {
    const { book, source, turns, limitOf } = await setUp()
    await book.ready()
    expect([1, 2, 3, 4, 5].map((n) => limitOf(`s${n}`))).toEqual([1, 2, 3, 4, 5])
    expect(book.statusOf("s3")).toMatchObject({ version: 3, ageMs: 0, isStale: false })
    expect(turns.map(({ service, change }) => `${service} ${change}`)).toEqual(
      [1, 2, 3, 4, 5].map((n) => `s${n} loaded`),
    )
    expect([source.lists, source.reads, source.asked]).toEqual([1, 5, []])
  })

  it("parses and reports only changed, added and removed services", async () => {
    const { source, turns, advance, book } = await setUp()
    turns.length = 0
    const before = book.rulesOf("s1")
    await advance(POLL_MS)
    expect([source.lists, source.reads, turns.length]).toEqual([2, 5, 0])
    expect(book.rulesOf("s1")).toBe(before)
    source.stored.set("s2", { rules: [rule(20)], version: 20 })
    source.stored.set("s6", { rules: [rule(6)] })
    source.stored.delete("s4")
    await advance(POLL_MS)
    expect(source.reads).toBe(7)
    expect(turns.map(({ service, change }) => `${service} ${change}`)).toEqual([
      "s2 changed",
      "s6 loaded",
      "s4 gone",
    ])
    expect(book.rulesOf("s4")).toBeUndefined()
    expect(book.rulesOf("s1")).toBe(before)
  })

  it("applies the pages that were read if a listing fails, and keeps the rules of unread services", async () => {
    const { source, book, advance, limitOf, errors, said } = await setUp()
    source.failure = { error: new RuleSourceError("throttled"), page: 1 }
    source.stored.set("s1", { rules: [rule(10)] })
    source.stored.set("s5", { rules: [rule(50)] })
    source.stored.delete("s2")
    await advance(POLL_MS)
    expect([1, 2, 3, 4, 5].map((n) => limitOf(`s${n}`))).toEqual([10, 2, 3, 4, 5])
    expect(errors).toEqual([["throttled", undefined]])
    expect(said).toEqual([
      expect.stringMatching(/^the table, all services: throttled\nThe previous rules stay in force/),
    ])
    // The listing is retried half a second later, and the error is not reported again.
    await advance(500)
    expect([source.lists, errors.length]).toEqual([3, 1])
    source.failure = undefined
    await advance(1_000)
    expect([1, 2, 3, 4, 5].map((n) => limitOf(`s${n}`))).toEqual([10, undefined, 3, 4, 50])
    expect(book.statusOf("s1").error).toBeUndefined()
  })

  it("aborts the listing if a page takes longer than ten seconds", async () => {
    const { source, advance, errors } = await setUp()
    source.gate = () => new Promise(() => {})
    await advance(POLL_MS)
    await advance(9_999)
    expect(errors).toEqual([])
    await advance(1)
    expect(errors).toEqual([
      ["The rules of all services cannot be loaded: no response within 10 seconds", undefined],
    ])
    source.gate = undefined
    await advance(500)
    expect(source.lists).toBe(3)
  })

  it("allows a listing more than ten seconds if no single page takes that long", async () => {
    const { source, advance, clock, errors, limitOf } = await setUp()
    source.gate = () => clock.wait(9_000)
    source.stored.set("s5", { rules: [rule(50)] })
    await advance(POLL_MS)
    for (let page = 0; page < 3; page++) await advance(9_000)
    expect([errors, limitOf("s5")]).toEqual([[], 50])
  })

  it("keeps the previous rules of a service if one rule is invalid, and reports the problem once", async () => {
    const { source, advance, book, errors, limitOf, said } = await setUp()
    source.stored.set("s2", { rules: [rule(0)] })
    source.stored.set("s3", { rules: [rule(30), rule(0, { name: "bad" })] })
    source.stored.set("s6", { rules: "none" as never })
    await advance(POLL_MS)
    await advance(POLL_MS)
    expect([limitOf("s2"), limitOf("s3"), limitOf("s5"), limitOf("s6")]).toEqual([2, 3, 5, undefined])
    expect(errors.map(([, service]) => service)).toEqual(["s2", "s3", "s6"])
    expect(said.map((line) => line.slice(0, 24))).toEqual([
      'the table, service "s2":',
      'the table, service "s3":',
      'the table, service "s6":',
    ])
    // A document with an unchanged stamp is not parsed again, even if it contained no valid rules.
    expect(source.reads).toBe(8)
    expect(said[2]).toContain("None of its rules are in force yet.")
    expect(book.statusOf("s2")).toMatchObject({ version: 2, error: { code: "SLUICE_INVALID_RULE" } })
    await expect(book.find("s6")).rejects.toThrow(InvalidRuleError)
    await book.ready()
  })

  it("accepts documents that are read asynchronously, and reads each document once", async () => {
    const { source, advance, errors, limitOf } = await setUp()
    const loadAll = source.loadAll.bind(source)
    source.loadAll = async function* () {
      for await (const page of loadAll()) {
        yield page.map((found) => ({
          ...found,
          read: async () => {
            await settled()
            const loaded = await found.read()
            if (found.service === "s2") throw new TypeError("no bytes")
            return loaded
          },
        }))
      }
    }
    source.stored.set("s1", { rules: [rule(10)], version: 2 })
    source.stored.set("s2", { rules: [rule(20)], version: 3 })
    source.stored.set("s6", { rules: [rule(60)], version: 1 })
    source.reads = 0
    await advance(POLL_MS)
    for (let turn = 0; turn < 10; turn++) await settled()
    expect([1, 2, 3, 6].map((n) => limitOf(`s${n}`))).toEqual([10, 2, 3, 60])
    expect(errors).toEqual([['The rules of service "s2" cannot be loaded: no bytes', "s2"]])
    expect(source.reads).toBe(3)
  })

  it("yields to requests while it parses thousands of services", async () => {
    const stored = Array.from({ length: 2_000 }, (_, i): [string, Stored] => [
      `s${i}`,
      { rules: [rule(i + 1), rule(9, { name: "b" })] },
    ])
    const source = new TableSource(Object.fromEntries(stored), POLL_MS)
    source.pageSize = 2_000
    const book = openBook({ source, services: "all", clock: manualClock() })
    let turns = 0
    let isLoading = true
    const count = () => {
      turns += 1
      if (isLoading) setImmediate(count)
    }
    setImmediate(count)
    await book.ready()
    isLoading = false
    expect(book.rulesOf("s1999")?.rules).toHaveLength(2)
    expect(turns).toBeGreaterThan(10)
  })

  it("never lets an older listing overwrite a newer load", async () => {
    const { source, book, advance, limitOf } = await setUp()
    const loadAll = source.loadAll.bind(source)
    let release = () => {}
    source.loadAll = async function* () {
      const read = []
      for await (const page of loadAll()) read.push(page)
      await new Promise<void>((resolve) => {
        release = resolve
      })
      yield* read
    }
    await advance(POLL_MS)
    source.stored.set("s1", { rules: [rule(10)], version: 10 })
    await book.refresh({ service: "s1" })
    release()
    await settled()
    expect([source.lists, limitOf("s1"), limitOf("s5")]).toEqual([2, 10, 5])
  })

  it("settles the calls that wait for a service when a listing contains its rules or an error", async () => {
    const { source, book } = await setUp()
    source.stored.set("s6", { rules: [rule(6)] })
    source.stored.set("s7", { rules: [rule(0)] })
    source.gate = () => new Promise(() => {})
    const found = [book.find("s6"), book.find("s7"), book.refresh({ service: "s7" })]
    await settled()
    source.gate = undefined
    await book.refresh()
    expect(await found[0]).toMatchObject({ rules: [{ limit: 6 }] })
    for (const rejected of found.slice(1)) await expect(rejected).rejects.toThrow(InvalidRuleError)
  })

  it("does not treat a newly loaded service as removed if an older listing lacks the service", async () => {
    const { source, book, advance, clock, limitOf } = await setUp()
    source.gate = () => clock.wait(1_000)
    await advance(POLL_MS)
    // The pending listing has read nothing yet. This load by name returns first.
    source.gate = undefined
    source.stored.set("s9", { rules: [rule(9)] })
    await book.refresh({ service: "s9" })
    expect(limitOf("s9")).toBe(9)
    source.stored.delete("s9")
    await advance(3_000)
    expect([source.lists, limitOf("s9")]).toEqual([2, 9])
  })
})

describe("a limiter on a rule book for all services", () => {
  it("applies its rules immediately if they are loaded, and otherwise waits for the first listing", async () => {
    const { limiterOf } = await setUp()
    expect(await limiterOf("s3").decide({})).toMatchObject({ limit: 3, remaining: 2 })
    const clock = manualClock()
    const early = limiterOn(openBook({ source: new TableSource(FIVE), services: "all", clock }), "s4", clock)
    expect(await early.decide({})).toMatchObject({ limit: 4, remaining: 3 })
  })

  it("emits only events about its own service", async () => {
    const { limiterOf, source, advance } = await setUp()
    const [one, two] = [limiterOf("s1"), limiterOf("s2")]
    const heard: string[] = []
    one.on("rules", ({ service }) => heard.push(`one: ${service}`))
    two.on("rules", ({ service }) => heard.push(`two: ${service}`))
    source.stored.set("s2", { rules: [rule(20)] })
    await advance(POLL_MS)
    expect(heard).toEqual(["two: s2"])
    expect(await two.peek({})).toMatchObject({ limit: 20 })
  })

  it("emits the error of a failed listing, and ready() rejects with it until a listing succeeds", async () => {
    const clock = manualClock()
    const source = new TableSource(FIVE, POLL_MS)
    source.failure = { error: new RuleSourceError("no table"), page: 0 }
    const book = openBook({ source, services: "all", clock })
    const limiter = limiterOn(book, "s1", clock)
    const errors: string[] = []
    limiter.on("rule-error", ({ message }) => errors.push(message))
    await expect(limiter.ready()).rejects.toThrow("no table")
    expect(errors).toEqual(["no table"])
    const patient = [limiter.ready({ retry: true }), book.ready({ retry: true })]
    clock.advance(500)
    await settled()
    source.failure = undefined
    clock.advance(1_000)
    await Promise.all(patient)
    expect(await limiter.peek({})).toMatchObject({ limit: 1 })
  })

  it("loads an unlisted service by name until the listing contains it", async () => {
    const { limiterOf, source, advance, book } = await setUp()
    const limiter = limiterOf("s9")
    await limiter.ready()
    expect(source.asked).toEqual(["s9"])
    expect(await limiter.peek({})).toMatchObject({ policy: "" })
    source.stored.set("s9", { rules: [rule(9)] })
    await advance(POLL_MS)
    expect(await limiter.peek({})).toMatchObject({ limit: 9 })
    const asked = source.asked.length
    await advance(POLL_MS)
    await advance(POLL_MS)
    expect(source.asked).toHaveLength(asked)
    expect(book.statusOf("s9")).toMatchObject({ ageMs: 0 })
  })

  it("keeps rules that are no longer listed until a load by name finds no rules either", async () => {
    const { limiterOf, source, advance } = await setUp()
    const limiter = limiterOf("s2")
    const changes: string[] = []
    limiter.on("rules", ({ change }) => changes.push(change))
    const loadAll = source.loadAll.bind(source)
    // A listing that is read during a write to the table may lack existing items.
    source.loadAll = async function* () {
      for await (const page of loadAll()) yield page.filter(({ service }) => service !== "s2")
    }
    await advance(POLL_MS)
    expect(await limiter.peek({})).toMatchObject({ limit: 2 })
    source.stored.delete("s2")
    await advance(POLL_MS)
    expect(await limiter.peek({})).toMatchObject({ policy: "" })
    expect(changes).toEqual(["gone"])
  })

  it("refreshes its own service without a listing", async () => {
    const { limiterOf, source } = await setUp()
    const limiter = limiterOf("s2")
    source.stored.set("s2", { rules: [rule(20)] })
    await limiter.refresh()
    expect(await limiter.peek({})).toMatchObject({ limit: 20 })
    expect([source.lists, source.asked]).toEqual([1, ["s2"]])
  })

  it("does not close the book or affect other limiters of the service when it closes", async () => {
    const { limiterOf, source, advance, book, limitOf } = await setUp()
    const [one, two] = [limiterOf("s9"), limiterOf("s9")]
    await one.close()
    source.stored.set("s9", { rules: [rule(9, { name: "nine" })] })
    await advance(POLL_MS)
    expect(await two.peek({})).toMatchObject({ limit: 9 })
    await two.close()
    source.stored.delete("s9")
    await advance(POLL_MS)
    expect([limitOf("s9"), limitOf("s1")]).toEqual([undefined, 1])
    await expect(book.refresh()).resolves.toBeUndefined()
  })

  it("keeps its rules when the book closes, but cannot be created on a closed book", async () => {
    const { limiterOf, book } = await setUp()
    const limiter = limiterOf("s1")
    book.close()
    expect(await limiter.peek({})).toMatchObject({ limit: 1 })
    expect(() => limiterOf("s2")).toThrow("The rule book is closed")
    await expect(book.ready()).rejects.toThrow("closed")
    await expect(limiter.ready()).rejects.toThrow("closed")
    book.close()
  })

  it("ends the wait for its rules when it closes, even though the book stays open", async () => {
    const clock = manualClock()
    const source = new TableSource(FIVE)
    source.gate = () => new Promise(() => {})
    const limiter = limiterOn(openBook({ source, clock }), "s1", clock)
    const waiting = limiter.ready({ retry: true })
    await Promise.all([limiter.close(), expect(waiting).rejects.toThrow("The limiter has been closed")])
  })
})

describe("a refresh", () => {
  it("reads the latest rules, even for services loaded by name, while polls may read older rules", async () => {
    const { limiterOf, source, book, advance } = await setUp()
    const limiter = limiterOf("s2")
    await advance(POLL_MS)
    expect(source.fresh).toEqual([false, false])
    await book.refresh()
    await limiter.refresh()
    expect([source.asked, source.fresh.splice(0)]).toEqual([["s2"], [false, false, true, true]])
    source.stored.delete("s2")
    await book.refresh()
    expect([source.asked, source.fresh.splice(0)]).toEqual([
      ["s2", "s2"],
      [true, true],
    ])
    await advance(POLL_MS)
    expect(source.fresh).toEqual([false, false])
  })

  it("resolves even if the listing now contains a service that was loaded by name", async () => {
    const { limiterOf, source, book, clock } = await setUp()
    const limiter = limiterOf("s9")
    await limiter.ready()
    source.stored.set("s9", { rules: [rule(9)] })
    const load = source.load.bind(source)
    source.load = async (service) => {
      await clock.wait(100)
      return load(service)
    }
    await book.refresh()
    expect(await limiter.peek({})).toMatchObject({ limit: 9 })
  })

  it.each(["before", "after"])(
    "emits one event if a listing contains a service that was requested by name %s it was stored",
    async (when) => {
      const { source, book, turns } = await setUp()
      if (when === "before") expect(await book.find("s6")).toBeUndefined()
      source.stored.set("s6", { rules: [rule(6)] })
      turns.length = 0
      let open = () => {}
      const opened = new Promise<void>((resolve) => {
        open = resolve
      })
      // The load by name returns after the list has been read.
      source.gate = () => opened
      const one = book.refresh({ service: "s6" })
      source.gate = undefined
      await book.refresh()
      open()
      await one
      await settled()
      expect(turns.map(({ service, change }) => `${service} ${change}`)).toEqual(["s6 loaded"])
      expect(book.rulesOf("s6")?.rules[0]?.limit).toBe(6)
    },
  )

  it("of one service is not completed by a listing that was read before the refresh", async () => {
    const { limiterOf, source, advance, clock } = await setUp()
    const limiter = limiterOf("s9")
    await limiter.ready()
    const loadAll = source.loadAll.bind(source)
    source.stored.set("s9", { rules: [rule(9)] })
    source.loadAll = async function* () {
      const read = []
      for await (const page of loadAll()) read.push(page)
      await clock.wait(100)
      yield* read
    }
    await advance(POLL_MS)
    source.stored.set("s9", { rules: [rule(90)] })
    source.gate = () => clock.wait(200)
    let done = false
    const refreshed = limiter.refresh().then(() => {
      done = true
    })
    await settled()
    await advance(100)
    expect([done, (await limiter.peek({})).limit]).toEqual([false, 9])
    await advance(200)
    await refreshed
    expect(await limiter.peek({})).toMatchObject({ limit: 90 })
  })

  it("of all services resolves even if a limiter closes, and updates the other limiters", async () => {
    const clock = manualClock()
    const source = new TableSource(FIVE, POLL_MS)
    const book = openBook({ source, clock })
    const [one, two] = [limiterOn(book, "s1", clock), limiterOn(book, "s2", clock)]
    await book.ready()
    source.gate = () => clock.wait(100)
    source.stored.set("s2", { rules: [rule(20)] })
    const [all, mine] = [book.refresh(), book.refresh({ service: "s1" })]
    await settled()
    await one.close()
    await mine
    clock.advance(100)
    await all
    expect(await two.peek({})).toMatchObject({ limit: 20 })
    const ending = book.refresh()
    await settled()
    book.close()
    await expect(ending).rejects.toThrow("The rule book is closed")
  })
})

describe("ready() of a book", () => {
  it("stops waiting for a service when its last limiter closes", async () => {
    const source = new TableSource(FIVE)
    source.gate = () => new Promise(() => {})
    const book = openBook({ source, clock: manualClock() })
    const limiter = limiterOn(book, "s1")
    const waiting = book.ready({ retry: true })
    await limiter.close()
    await expect(waiting).resolves.toBeUndefined()
  })

  it("stops waiting for listed rules that are invalid when their last limiter closes", async () => {
    const { book, limiterOf } = await setUp({ s1: { rules: [rule(0)] } })
    const limiter = limiterOf("s1")
    const waiting = book.ready({ retry: true })
    await settled()
    await limiter.close()
    await expect(waiting).resolves.toBeUndefined()
  })
})

describe("a rules file", () => {
  async function fileOf(text: string) {
    const folder = await mkdtemp(join(tmpdir(), "sluice-"))
    onTestFinished(() => rm(folder, { recursive: true }))
    const path = join(folder, "rules.yaml")
    await writeFile(path, text)
    return { path, source: fileRules(path, { pollMs: 10 }) }
  }
  const document = (service: string, limit: number) =>
    `---\n${service}rules: [{ name: rule, limit: ${limit}, window: 1m }]\n`

  it("lists its services, and applies its document without service_id to any other name", async () => {
    const text = document("service_id: a\n", 1) + document("service_id: b\n", 2) + document("", 3)
    const { path, source } = await fileOf(text)
    const book = openBook({ source, services: "all" })
    const limiter = limiterOn(book, "mine")
    const limits = async () =>
      Promise.all(["a", "b", "c"].map(async (name) => (await book.find(name))?.rules[0]?.limit))
    expect(await limits()).toEqual([1, 2, 3])
    expect(await limiter.peek({})).toMatchObject({ limit: 3 })
    const changed = new Promise<void>((resolve) => limiter.on("rules", () => resolve()))
    await writeFile(path, text.replace("limit: 1,", "limit: 10,").replace("limit: 3,", "limit: 30,"))
    await changed
    await book.refresh()
    await limits()
    await book.refresh({ service: "c" })
    expect(await limits()).toEqual([10, 2, 30])
    expect(await limiter.peek({})).toMatchObject({ limit: 30 })
  })

  it("lists hundreds of services, each with the same stamp as long as its document is unchanged", async () => {
    const names = Array.from({ length: 250 }, (_, i) => `s${i}`)
    const { source } = await fileOf(names.map((name) => document(`service_id: ${name}\n`, 5)).join(""))
    const list = async () => {
      const all = []
      for await (const page of source.loadAll?.() ?? []) all.push(...page)
      return all
    }
    const [first, second] = [await list(), await list()]
    expect(first.map(({ service }) => service)).toEqual(names)
    expect(second.map(({ stamp }) => stamp)).toEqual(first.map(({ stamp }) => stamp))
    expect(first[7]?.read()).toMatchObject({ rules: [{ limit: 5 }], problems: [] })
  })

  it("causes one report of an invalid document without service_id, even if many names are requested", async () => {
    const text = document("service_id: a\n", 1) + document("", 0)
    const { path, source } = await fileOf(text)
    const said: string[] = []
    const say = (_fields: object, message: string) => said.push(message)
    const book = openBook({ source, services: "all", logger: { warn: say, error: say } })
    const findAll = async () => {
      for (const name of ["b", "c", "d"]) {
        await expect(book.find(name)).rejects.toThrow(InvalidRuleError)
        expect(book.statusOf(name).error).toBeInstanceOf(InvalidRuleError)
      }
    }
    const wrong = expect.stringMatching(
      /, service "b": the stored rules are rejected.*\nWrong rules in ".*": \[1\]\.rules\[0\]\.limit \(line \d+, column \d+\): -?\d+ is not a limit/,
    )
    const right = expect.stringContaining(', service "b": the stored rules can be used again')
    // Rename the file in one step, so that a half-written file is never read.
    const replace = async (limit: number) => {
      await writeFile(`${path}.new`, text.replace("limit: 0", `limit: ${limit}`))
      await rename(`${path}.new`, path)
    }
    await findAll()
    expect(said.splice(0)).toEqual([wrong])
    for (const limit of [-10, -200]) {
      await replace(limit)
      await book.refresh()
      await findAll()
      expect(said.splice(0)).toEqual([wrong])
    }
    await replace(5_000)
    await book.refresh()
    expect((await book.find("b"))?.rules[0]?.limit).toBe(5_000)
    expect(said).toEqual([right])
  })

  it("makes the listing fail if a service_id is invalid", async () => {
    const { source } = await fileOf("service_id: []\nrules: []\n")
    const book = openBook({ source, services: "all" })
    await expect(book.ready()).rejects.toThrow(InvalidRuleError)
  })
})

describe("a recovery", () => {
  it("is logged for each service separately, and for the listing as a whole", async () => {
    const { source, said, advance } = await setUp()
    const good = source.stored.get("s2") as Stored
    source.stored.set("s2", { rules: [{ ...rule(2), window: "never" }], version: 9 })
    await advance(POLL_MS)
    source.failure = { error: new RuleSourceError("down"), page: 1 }
    await advance(POLL_MS)
    said.splice(0)
    source.failure = undefined
    await advance(POLL_MS)
    expect(said).toEqual([
      "the table, all services: the list of services can be loaded again. (@sluice/core/errors/sluice_rules_recovered.md)",
    ])
    source.stored.set("s2", good)
    await advance(POLL_MS)
    expect(said.slice(1)).toEqual([
      expect.stringContaining('service "s2": the stored rules can be used again. In force now: '),
    ])
    await advance(POLL_MS)
    expect(said).toHaveLength(2)
  })
})
