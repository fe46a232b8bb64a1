import { existsSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import {
  createLimiter,
  InvalidOptionError,
  InvalidRuleError,
  type LimiterOptions,
  memoryStore,
  type RequestFacts,
  RuleSourceError,
} from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { rateLimit as onExpress } from "@sluice/express"
import { rateLimit as onFastify } from "@sluice/fastify"
import { rateLimit as onKoa } from "@sluice/koa"
import { createRuleBook, fileRules, liveRules, type RuleSource, staticRules } from "@sluice/rules"
import fastify from "fastify"
import { describe, expect, it, onTestFinished } from "vitest"
import { until } from "./servers/until.ts"

const QUIET = { warn() {}, error() {} }
const DENY = { onRulesMissing: "deny" } as const
const ALICE: RequestFacts = { remoteAddress: "192.0.2.1" }
const GOOD = "service_id: shop\nrules:\n  - { name: daily, field: ip, limit: 2, window: 1 day }\n"
const BAD = "service_id: shop\nrules:\n  - { name: daily, field: ip, limit: 2, window: 1 dya }\n"
const OTHER_BAD = `${GOOD}---\nservice_id: search\nrules:\n  - { name: fast, field: ip, limit: 0, window: 1 day }\n`

/** Returns the path of a rules file for one test. Without `text`, the file does not exist. */
async function rulesFile(text?: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-start-"))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, "rules.yaml")
  if (text !== undefined) await writeFile(path, text)
  return path
}

/** Whether this is a source of the test itself, which a limiter cannot open. */
function isSource(rules: LimiterOptions<RequestFacts>["rules"] | RuleSource): rules is RuleSource {
  return rules !== undefined && "load" in rules && !("open" in rules)
}

function create(
  given: LimiterOptions<RequestFacts>["rules"] | RuleSource,
  more: LimiterOptions<RequestFacts> = {},
) {
  const rules = isSource(given) ? liveRules(given) : given
  const said: string[] = []
  const log = ({ code }: { readonly code: string }, message: string): void =>
    void said.push(`${code} ${message}`)
  const clock = manualClock()
  const logger = { warn: log, error: log }
  const limiter = createLimiter({ rules, service: "shop", clock, logger, ...more })
  onTestFinished(() => limiter.close())
  return { limiter, clock, said }
}

describe("a limiter whose rules are in a file", () => {
  it("applies its rules as soon as it is created", async () => {
    const { limiter, said } = create(fileRules(await rulesFile(GOOD)))
    const decided = limiter.decide(ALICE)
    expect(limiter.rules).toMatchObject({ ageMs: 0, isStale: false, isRejected: false, problems: [] })
    expect(await decided).toMatchObject({ policy: "daily", remaining: 1 })
    await limiter.ready()
    expect(said).toEqual([])
  })

  it.each<[string, string | undefined, new (...args: never[]) => Error, string]>([
    ["is missing", undefined, RuleSourceError, "does not exist: create it, or correct the path"],
    ["is not YAML", "rules: [", RuleSourceError, "is not YAML: line 1, column "],
    ["is empty", "", RuleSourceError, "is empty: write a document"],
    [
      "has an invalid rule for the limiter's service",
      BAD,
      InvalidRuleError,
      "rules[0].window (line 3, column ",
    ],
    [
      "is for another service",
      GOOD.replace("shop", "search"),
      InvalidRuleError,
      '"search" is not the service "shop"',
    ],
  ])("is not created when the file %s", async (_what, text, type, message) => {
    const file = await rulesFile(text)
    const options = { rules: fileRules(file), service: "shop", logger: QUIET }
    const thrown = (make: () => unknown): unknown => {
      try {
        make()
        return undefined
      } catch (error) {
        return error
      }
    }
    for (const make of [createLimiter, onExpress, onKoa]) {
      const error = thrown(() => make(options))
      expect(error).toBeInstanceOf(type)
      expect((error as Error).message).toContain(message)
      expect((error as Error).message).toContain(JSON.stringify(file))
    }
    const app = fastify()
    const registered = async () => app.register(onFastify, options)
    await expect(registered()).rejects.toThrow(type)
    const book = createRuleBook({ source: options.rules, logger: QUIET })
    onTestFinished(() => book.close())
    expect(() => createLimiter({ ...options, rules: book })).toThrow(message)
    const all = createRuleBook({ source: options.rules, services: "all", logger: QUIET })
    onTestFinished(() => all.close())
    expect(() => createLimiter({ ...options, rules: all })).toThrow(message)
  })

  it("is not created without its file, and the error names the option `required: false`", async () => {
    const path = await rulesFile()
    const create = () => createLimiter({ rules: fileRules(path), onRulesMissing: "deny", logger: QUIET })
    expect(create).toThrow(
      "does not exist: create it, or correct the path. If it may appear later, give fileRules the option required: false",
    )
    const book = createRuleBook({ source: fileRules(path, { required: false }), logger: QUIET })
    onTestFinished(() => book.close())
    await expect(book.refresh({ service: "shop" })).rejects.toThrow(/correct the path$/)
  })

  it("is created if rules of another service are invalid, and logs the problem once", async () => {
    const { limiter, said } = create(fileRules(await rulesFile(OTHER_BAD)))
    expect(await limiter.decide(ALICE)).toMatchObject({ policy: "daily" })
    expect(limiter.rules.problems).toEqual([])
    expect(said).toHaveLength(1)
    expect(said[0]).toMatch(
      /^SLUICE_RULES_REJECTED rules file ".*": the source has problems outside the rules in force/,
    )
    expect(said[0]).toContain('service "search" rules[0].limit (line 7, column ')
  })

  it("applies no rules if all documents are for other services, and logs the problem", async () => {
    const others = `${GOOD.replace("shop", "shpo")}---\n${GOOD.replace("shop", "search")}`
    const { limiter, said } = create(fileRules(await rulesFile(others)))
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, checks: [] })
    expect(said).toHaveLength(1)
    expect(said[0]).toContain('the file does not have a document for service "shop"')
    expect(said[0]).toContain('service_id: "shop", and `rules: []` if it has no rules')
  })

  it("leaves no resources open if it is not created", async () => {
    const path = await rulesFile(BAD)
    let watching = 0
    const file = fileRules(path)
    const source: RuleSource = {
      ...file,
      watch(changed) {
        watching++
        const stop = file.watch?.(changed)
        return () => {
          watching--
          stop?.()
        }
      },
    }
    const store = memoryStore()
    expect(() => create(source, { store })).toThrow(InvalidRuleError)
    expect(watching).toBe(0)
    await writeFile(path, GOOD)
    const { limiter } = create(source, { store })
    expect(await limiter.decide(ALICE)).toMatchObject({ policy: "daily" })
  })

  it("is not created if another limiter already uses the same rule on the same store", async () => {
    const path = await rulesFile(GOOD)
    const store = memoryStore()
    const first = create(fileRules(path), { store }).limiter
    expect(() => create(fileRules(path), { store })).toThrow(InvalidOptionError)
    await first.close()
    create(fileRules(path), { store })
  })

  it("does not read the file if it is disabled", async () => {
    const { limiter } = create(fileRules(await rulesFile()), { enabled: false })
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, policy: "" })
  })
})

describe("a file that may appear later", () => {
  it("requires onRulesMissing or defaultRules", async () => {
    const source = fileRules(await rulesFile(), { required: false })
    expect(() => create(source)).toThrow(/onRulesMissing: is missing/)
  })

  it("is loaded as soon as it exists", async () => {
    const path = await rulesFile()
    const { limiter, clock } = create(fileRules(path, { required: false, pollMs: 10 }), {
      onRulesMissing: "deny",
    })
    await expect(limiter.ready()).rejects.toThrow("does not exist")
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: false, refusal: "store-failure" })
    await writeFile(path, GOOD)
    expect(existsSync(path)).toBe(true)
    await until("the rules are loaded", async () => {
      clock.advance(30_000)
      await nextTurn()
      return (await limiter.peek(ALICE)).policy === "daily"
    })
  })
})

describe("a custom source that loads synchronously", () => {
  it("is read when the limiter is created", async () => {
    const { limiter } = create(staticRules([{ name: "own", field: "ip", limit: 2, window: "1 day" }]))
    expect(await limiter.decide(ALICE)).toMatchObject({ policy: "own" })
  })

  it.each<[string, RuleSource["loadSync"], string]>([
    [
      "throws",
      () => {
        throw new Error("no such bundle")
      },
      'The rules of service "shop" cannot be loaded: no such bundle',
    ],
    [
      "has an invalid rule",
      () => ({ rules: [{ name: "own", field: "ip", limit: 0, window: "1 day" }], problems: [] }),
      "rules[0].limit: 0 is not a limit",
    ],
  ])("makes createLimiter throw if the source %s", (_what, loadSync, message) => {
    const load = () => new Promise<never>(() => undefined)
    expect(() => create({ load, ...(loadSync && { loadSync }) })).toThrow(message)
  })
})

describe("a custom source that returns the wrong shape", () => {
  const PROBLEM = { path: "", message: "is wrong" }
  const WRONG = [
    undefined,
    null,
    [],
    {},
    { rules: [] },
    { rules: [], problems: null },
    { rules: [], problems: [PROBLEM, null] },
  ].map((value) => ({ value }))
  const shape = "must return { rules, problems }, a list of rules and a list of problems, but it returned "

  it.each(WRONG)(
    "causes an error that states what load() must return if it returns $value",
    async ({ value }) => {
      const { limiter, said } = create({ name: "mine", load: async () => value as never }, DENY)
      const failed = limiter.ready()
      await expect(failed).rejects.toThrow(RuleSourceError)
      await expect(failed).rejects.toThrow(`load() of mine ${shape}`)
      expect(said[0]).toContain(`SLUICE_RULES_REJECTED mine, service "shop": load() of mine ${shape}`)
    },
  )

  it.each(WRONG)(
    "causes an error that states what loadSync() must return if it returns $value",
    ({ value }) => {
      const source = { name: "mine", load: async () => value as never, loadSync: () => value as never }
      expect(() => create(source)).toThrow(`loadSync() of mine ${shape}`)
    },
  )

  it.each(WRONG)(
    "causes an error that states what a listed service's read() must return if it returns $value",
    async ({ value }) => {
      const load = async () => ({ rules: [], problems: [] })
      async function* loadAll() {
        yield [{ service: "shop", stamp: "1", read: () => value as never }]
      }
      const source = { name: "mine", load, loadAll }
      const book = createRuleBook({ source, services: "all", logger: QUIET })
      onTestFinished(() => book.close())
      const errors: string[] = []
      book.on("rule-error", ({ message }) => errors.push(message))
      await book.ready()
      expect(errors).toEqual([expect.stringContaining(`read() of mine ${shape}`)])
    },
  )

  it("causes an error that states that loadSync() must not return a promise", () => {
    const loadSync = () => Promise.reject(new Error("not handled")) as never
    const source = { name: "mine", load: async () => ({ rules: [], problems: [] }), loadSync }
    expect(() => create(source)).toThrow(
      "loadSync() of mine returned a promise, but must return the rules synchronously: change it, or leave it out",
    )
  })
})

describe("a request before the first rules are loaded", () => {
  it("waits at most a second, and not at all after a load has failed", async () => {
    const loads: { resolve(): void; reject(error: Error): void }[] = []
    const source: RuleSource = {
      load: () =>
        new Promise((resolve, reject) => {
          const rules = [{ name: "daily", field: "ip", limit: 2, window: "1 day" }]
          loads.push({ resolve: () => resolve({ rules, problems: [] }), reject })
        }),
    }
    const { limiter, clock } = create(source, { onRulesMissing: "deny" })
    const answers: boolean[] = []
    const ask = () => void limiter.decide(ALICE).then(({ allowed }) => answers.push(allowed))
    ask()
    clock.advance(999)
    await nextTurn()
    expect(answers).toEqual([])
    clock.advance(1)
    await nextTurn()
    expect(answers).toEqual([false])

    const other = create(source, { onRulesMissing: "deny" })
    const waiting = other.limiter.decide(ALICE)
    loads[1]?.reject(new Error("no answer"))
    expect(await waiting).toMatchObject({ allowed: false })
    // The next load hangs, and no decision waits for it.
    other.clock.advance(500)
    await nextTurn()
    expect(loads).toHaveLength(3)
    expect(await other.limiter.decide(ALICE)).toMatchObject({ allowed: false })
    loads[2]?.resolve()
    await nextTurn()
    expect(await other.limiter.decide(ALICE)).toMatchObject({ allowed: true, policy: "daily" })
  })

  it("does not wait if the rule book has already failed to load rules for an earlier limiter", async () => {
    const source: RuleSource = {
      load: async () => {
        throw new Error("down")
      },
    }
    const book = createRuleBook({ source, onRulesMissing: "deny", logger: QUIET, clock: manualClock() })
    onTestFinished(() => book.close())
    await expect(create(book).limiter.ready()).rejects.toThrow("down")
    expect(await create(book).limiter.decide(ALICE)).toMatchObject({ allowed: false })
    expect(await create(book, { service: "other" }).limiter.decide(ALICE)).toMatchObject({ allowed: false })
  })
})

/** Returns a network source that fails until `mend` is called. */
function open() {
  let isThere = false
  const source: RuleSource = {
    name: "our own source",
    async load() {
      if (!isThere) throw new Error("no answer")
      return { rules: [{ name: "daily", field: "ip", limit: 2, window: "1 day" }], problems: [] }
    },
  }
  const mend = (): void => {
    isThere = true
  }
  return { source, mend }
}

describe("a limiter whose rules are loaded over the network", () => {
  it("requires onRulesMissing or defaultRules", async () => {
    const { source } = open()
    const explained = new RegExp(
      `onRulesMissing: is missing: the rules of ${source.name} are loaded after the limiter is created.*"allow".*"deny".*defaultRules`,
    )
    const options = { rules: liveRules(source), service: "shop", logger: QUIET }
    for (const make of [createLimiter, onExpress, onKoa]) {
      expect(() => make(options)).toThrow(InvalidOptionError)
      expect(() => make(options)).toThrow(explained)
    }
    await expect((async () => fastify().register(onFastify, options))()).rejects.toThrow(explained)
    const book = createRuleBook({ source, logger: QUIET })
    onTestFinished(() => book.close())
    expect(() => createLimiter({ ...options, rules: book })).toThrow(explained)
  })

  it('refuses requests in every method until the first load if onRulesMissing is "deny"', async () => {
    const { source } = open()
    const { limiter } = create(source, { onRulesMissing: "deny" })
    const denied = { allowed: false, refusal: "store-failure", retryAfterMs: 1_000, cost: 0 }
    expect(await limiter.decide(ALICE)).toMatchObject(denied)
    expect(await limiter.decide(ALICE, { cost: 0 })).toMatchObject(denied)
    expect(await limiter.peek(ALICE)).toMatchObject(denied)
    expect(await limiter.takeUpTo(ALICE, 5)).toMatchObject(denied)
    const message = "Refused, because no rules have been loaded yet: retry after 1000 ms."
    const error = { code: "SLUICE_RATE_LIMIT_EXCEEDED", message, decision: denied }
    await expect(limiter.enforce(ALICE)).rejects.toMatchObject(error)
    await expect(limiter.acquire(ALICE)).rejects.toMatchObject(error)
  })

  it("accepts only one of defaultRules and onRulesMissing", async () => {
    const { source } = open()
    const both = {
      defaultRules: [{ field: "ip", limit: 5, window: "1 minute" }],
      onRulesMissing: "allow",
    } as const
    const message = "onRulesMissing: is given together with defaultRules"
    expect(() => create(source, both)).toThrow(message)
    expect(() => createRuleBook({ source, ...both })).toThrow(message)
  })

  it("refuses requests, admits them or uses the default rules, as configured, until rules are loaded", async () => {
    const { source, mend } = open()
    const deny = create(source, { onRulesMissing: "deny" })
    const allow = create(source, { onRulesMissing: "allow" })
    const stand = create(source, {
      defaultRules: [{ name: "stand-in", field: "ip", limit: 1, window: "1 day" }],
    })
    expect(await deny.limiter.decide(ALICE)).toMatchObject({
      allowed: false,
      policy: "",
      refusal: "store-failure",
      degraded: true,
      cost: 0,
      remaining: 0,
      retryAfterMs: 1_000,
      checks: [],
    })
    expect(await allow.limiter.decide(ALICE)).toMatchObject({ allowed: true, policy: "", degraded: false })
    expect(await stand.limiter.decide(ALICE)).toMatchObject({ allowed: true, policy: "stand-in" })
    mend()
    for (const { limiter } of [deny, allow, stand]) {
      await limiter.refresh()
      expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, policy: "daily", remaining: 1 })
    }
  })

  it("uses the onRulesMissing of its rule book unless it sets its own", async () => {
    const { source, mend } = open()
    const book = createRuleBook({ source, logger: QUIET, onRulesMissing: "deny" })
    onTestFinished(() => book.close())
    const { limiter } = create(book)
    const own = create(book, { onRulesMissing: "allow" }).limiter
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: false, refusal: "store-failure" })
    expect(await own.decide(ALICE)).toMatchObject({ allowed: true })
    mend()
    await book.refresh()
    expect(await limiter.decide(ALICE)).toMatchObject({ allowed: true, policy: "daily" })
  })
})
