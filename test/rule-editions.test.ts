import { mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import { createLimiter, InvalidRuleError } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { dynamoDBRules } from "@sluice/dynamodb"
import { instrument } from "@sluice/otel"
import {
  createRuleBook,
  fileRules,
  type LiveRules,
  type LiveSource,
  liveRules,
  type RuleSource,
} from "@sluice/rules"
import { describe, expect, it, onTestFinished } from "vitest"
import { readRuleDocument } from "../packages/core/src/rules/documents/rule-document.ts"
import { itemOf, makeTable, putItem } from "./dynamodb/tables.ts"
import { startMetering } from "./otel/metering.ts"
import { startDynamoDB } from "./servers/dynamodb.ts"

const HOUR = 3_600_000

interface Document {
  readonly service_id: string
  readonly version?: number
  readonly rules: readonly object[]
}

/** A location of rules, with the source that reads it and a function that replaces the rules. */
interface Place {
  readonly source: LiveSource
  write(...documents: readonly Document[]): Promise<void>
  /** Returns the place that the report of a problem of the rule at `index` names. */
  readonly placeOf: (index: number) => string
}

async function inFile(...documents: readonly Document[]): Promise<Place & { readonly path: string }> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-editions-"))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, "rules.yaml")
  const write = async (...all: readonly Document[]): Promise<void> => {
    // JSON is valid YAML. Write one rule per line.
    const text = all.map(({ rules, ...head }) => {
      const lines = rules.map((rule) => `  - ${JSON.stringify(rule)}`)
      return `${Object.entries(head)
        .map(([name, value]) => `${name}: ${value}`)
        .join("\n")}\nrules:${lines.length === 0 ? " []" : `\n${lines.join("\n")}`}\n`
    })
    await writeFile(`${path}.new`, text.join("---\n"))
    await rename(`${path}.new`, path)
  }
  await write(...documents)
  const source = fileRules(path)
  // The first three lines are service_id, version and "rules:".
  return { source, write, path, placeOf: (index) => `rules[${index}].window (line ${index + 4}, column ` }
}

async function inTable(...documents: readonly Document[]): Promise<Place> {
  const server = await startDynamoDB()
  onTestFinished(() => server.stop())
  const client = server.client()
  await makeTable(client, "rules")
  const write = async (...all: readonly Document[]): Promise<void> => {
    for (const document of all) await putItem(client, "rules", itemOf(document))
  }
  await write(...documents)
  const source = dynamoDBRules({ client, tableName: "rules" })
  return { source, write, placeOf: (index) => `table "rules" service "shop" rules[${index}].window` }
}

async function inOwnSource(...documents: readonly Document[]): Promise<Place> {
  let stored = documents
  const source: RuleSource = {
    name: "our own source",
    pollMs: 60_000,
    async load(service) {
      const document = stored.find(({ service_id }) => service_id === service)
      return document === undefined ? { rules: [], problems: [] } : readRuleDocument(document)
    },
  }
  const write = async (...all: readonly Document[]): Promise<void> => {
    stored = all
  }
  return { source: { ...source, ...liveRules(source) }, write, placeOf: (index) => `rules[${index}].window` }
}

const PLACES = { "a file": inFile, DynamoDB: inTable, "a custom source": inOwnSource }

const login = (more: object = {}) => ({ name: "login", field: "ip", limit: 2, window: "1 hour", ...more })
const overall = (more: object = {}) => ({ name: "overall", field: "ip", limit: 9, window: "1 hour", ...more })
const shop = (version: number, ...rules: readonly object[]): Document => ({
  service_id: "shop",
  version,
  rules,
})

/** Creates a limiter of the service "shop", and records its log and metrics. */
function limit(source: LiveRules) {
  const clock = manualClock()
  const said: string[] = []
  const log = ({ code }: { readonly code: string }, message: string): void =>
    void said.push(`${code} ${message}`)
  const limiter = createLimiter({
    rules: source,
    service: "shop",
    onRulesMissing: "deny",
    clock,
    logger: { warn: log, error: log },
  })
  onTestFinished(() => limiter.close())
  const metering = startMetering()
  instrument(limiter, { meterProvider: metering.meterProvider })
  const metric = async (name: string) => (await metering.values(name))[""]
  const inForce = async (): Promise<Record<string, number>> => {
    const { checks } = await limiter.peek({ remoteAddress: "192.0.2.9" })
    return Object.fromEntries(checks.map(({ policy, limit: units }) => [policy, units]))
  }
  const statuses = async (times: number): Promise<boolean[]> => {
    const all: boolean[] = []
    for (let i = 0; i < times; i++) all.push((await limiter.decide({ remoteAddress: "192.0.2.7" })).allowed)
    return all
  }
  return { limiter, clock, said, metric, inForce, statuses }
}

describe.each(Object.entries(PLACES))("a version of the rules in %s", (_name, open) => {
  it("is rejected as a whole when one rule is invalid, and the previous version stays in force", async () => {
    const { source, write, placeOf } = await open(shop(1, login(), overall()))
    const { limiter, said, metric, inForce, statuses } = limit(source)
    await limiter.ready()
    await write(shop(2, login({ window: "1 huor" }), overall({ limit: 5 })))
    await expect(limiter.refresh()).rejects.toThrow(InvalidRuleError)

    expect(await statuses(4)).toEqual([true, true, false, false])
    expect(await inForce()).toEqual({ login: 2, overall: 9 })
    expect(limiter.rules).toMatchObject({ version: 1, isRejected: true, problems: [] })
    expect(limiter.rules.error).toMatchObject({ problems: [{ rule: "login" }] })
    expect(await metric("sluice.rule_set.rejected")).toBe(1)
    expect(await metric("sluice.rule_set.errors")).toBe(1)

    expect(said).toHaveLength(1)
    expect(said[0]).toMatch(/^SLUICE_RULES_REJECTED .*service "shop"/)
    expect(said[0]).toContain('rule "login"')
    expect(said[0]).toContain(placeOf(0))
    expect(said[0]).toContain('"1 huor" is not a window')
    expect(said[0]).toContain(
      'The previous rules stay in force: version 1 with the rules "login", "overall".',
    )
  })

  it("is reported again every hour while it is rejected, and no longer once it is corrected", async () => {
    const { source, write } = await open(shop(1, login()))
    const { limiter, clock, said, metric } = limit(source)
    await limiter.ready()
    await write(shop(2, login({ window: "1 huor" })))
    await expect(limiter.refresh()).rejects.toThrow(InvalidRuleError)
    const rejections = () => said.filter((line) => line.startsWith("SLUICE_RULES_REJECTED"))
    expect(rejections()).toHaveLength(1)
    clock.advance(HOUR - 1)
    await expect(limiter.refresh()).rejects.toThrow(InvalidRuleError)
    expect(rejections()).toHaveLength(1)
    for (let hours = 2; hours <= 3; hours++) {
      clock.advance(HOUR)
      await expect(limiter.refresh()).rejects.toThrow(InvalidRuleError)
      expect(rejections()).toHaveLength(hours)
      expect(rejections().at(-1)).toBe(rejections()[0])
    }
    expect(await metric("sluice.rule_set.errors")).toBe(1)

    await write(shop(3, login({ limit: 4 })))
    await limiter.refresh()
    expect(said.at(-1)).toMatch(/^SLUICE_RULES_RECOVERED/)
    expect(limiter.rules).toMatchObject({ version: 3, isRejected: false })
    expect(await metric("sluice.rule_set.rejected")).toBe(0)
    const before = said.length
    clock.advance(2 * HOUR)
    await limiter.refresh()
    expect(said).toHaveLength(before)
  })

  it("increases the error count if it is rejected, even for the same problem as before", async () => {
    const { source, write } = await open(shop(1, login(), overall()))
    const { limiter, metric } = limit(source)
    await limiter.ready()
    for (const other of [5, 6]) {
      await write(shop(2, login({ window: "1 huor" }), overall({ limit: other })))
      await expect(limiter.refresh()).rejects.toThrow(InvalidRuleError)
      await expect(limiter.refresh()).rejects.toThrow(InvalidRuleError)
    }
    expect(await metric("sluice.rule_set.errors")).toBe(2)
  })

  it("removes a rule that it does not contain", async () => {
    const { source, write } = await open(shop(1, login(), overall()))
    const { limiter, inForce } = limit(source)
    await limiter.ready()
    await write(shop(2, overall()))
    await limiter.refresh()
    expect(await inForce()).toEqual({ overall: 9 })
  })

  it("applies its valid rules if there was no version before, and reports its invalid rules", async () => {
    const other: Document = { service_id: "search", version: 1, rules: [overall()] }
    const third: Document = { ...other, service_id: "third" }
    const { source, write } = await open(other, third)
    const { limiter, said, inForce, metric } = limit(source)
    await limiter.ready()
    expect(await inForce()).toEqual({})
    // A file without a document for the service was reported when the limiter was created.
    said.length = 0
    await write(other, third, shop(1, login({ window: "1 huor" }), overall()))
    await limiter.refresh()
    expect(await inForce()).toEqual({ overall: 9 })
    expect(limiter.rules).toMatchObject({ version: 1, isRejected: false, problems: [{ rule: "login" }] })
    expect(await metric("sluice.rule_set.problems")).toBe(1)
    expect(said).toHaveLength(1)
    expect(said[0]).toContain('rule "login"')
    expect(said[0]).toContain('Its valid rules are in force: version 1 with the rule "overall".')
    // From now on, a previous version exists.
    await write(other, third, shop(2, login({ window: "1 huor" }), overall({ limit: 5 })))
    await expect(limiter.refresh()).rejects.toThrow(InvalidRuleError)
    expect(await inForce()).toEqual({ overall: 9 })
  })
})

describe("a rejected version of a source that is polled", () => {
  function polled() {
    const clock = manualClock()
    const said: string[] = []
    const log = ({ code }: { readonly code: string }): void => void said.push(code)
    let rules: object[] | undefined = [login()]
    const source: RuleSource = {
      pollMs: 60_000,
      async load() {
        if (rules === undefined) throw new Error("no connection")
        return readRuleDocument({ rules })
      },
    }
    const limiter = createLimiter({
      ...{ rules: liveRules(source), onRulesMissing: "deny", clock, logger: { warn: log, error: log } },
    })
    onTestFinished(() => limiter.close())
    const metering = startMetering()
    instrument(limiter, { meterProvider: metering.meterProvider })
    return {
      ...{ limiter, clock, said },
      store(next: object[] | undefined) {
        rules = next
      },
      errors: async () => await metering.values("sluice.rule_set.errors", "error.type"),
    }
  }

  it("is not stale while the source responds, but becomes stale in a later outage", async () => {
    const { limiter, clock, said, store } = polled()
    await limiter.ready()
    store([login({ window: "1 huor" })])
    for (let minutes = 0; minutes < 10; minutes++) {
      await expect(limiter.refresh()).rejects.toThrow(InvalidRuleError)
      clock.advance(60_000)
      await nextTurn()
    }
    expect(limiter.rules).toMatchObject({ isRejected: true, isStale: false })
    expect(said).toEqual(["SLUICE_RULES_REJECTED"])

    store(undefined)
    await expect(limiter.refresh()).rejects.toThrow("no connection")
    clock.advance(179_000)
    await nextTurn()
    expect(limiter.rules.isStale).toBe(false)
    clock.advance(61_000)
    await nextTurn()
    expect(limiter.rules.isStale).toBe(true)
    expect(said).toContain("SLUICE_RULES_STALE")
  })

  it("is counted once, even if an outage occurs between two loads of this version", async () => {
    const { limiter, errors, store } = polled()
    await limiter.ready()
    const wrong = [login({ window: "1 huor" })]
    for (const stored of [wrong, undefined, wrong]) {
      store(stored)
      await expect(limiter.refresh()).rejects.toThrow()
    }
    expect(await errors()).toEqual({ SLUICE_INVALID_RULE: 1, SLUICE_RULE_SOURCE: 1 })
  })
})

describe("a file of rules for several services", () => {
  const search = (...rules: readonly object[]): Document => ({ service_id: "search", version: 1, rules })

  it("leaves the rules of every service in force if the file cannot be parsed", async () => {
    const { source, path } = await inFile(shop(1, login()), search(overall()))
    const { limiter, said, inForce, metric } = limit(source)
    await limiter.ready()
    await writeFile(path, "service_id: shop\nrules: [\n")
    await expect(limiter.refresh()).rejects.toThrow("is not YAML")
    expect(await inForce()).toEqual({ login: 2 })
    expect(limiter.rules.isRejected).toBe(true)
    expect(await metric("sluice.rule_set.rejected")).toBe(1)
    expect(said[0]).toMatch(/line \d+, column \d+/)
    expect(said[0]).toContain('The previous rules stay in force: version 1 with the rule "login".')
  })

  it("updates the other services if the new rules of one service are rejected", async () => {
    const { source, write } = await inFile(shop(1, login()), search(overall()))
    const { limiter, inForce } = limit(source)
    await limiter.ready()
    await write(shop(2, login({ limit: 3 })), search(overall({ window: "soon" })))
    await limiter.refresh()
    expect(await inForce()).toEqual({ login: 3 })
    // A duplicate document for another service is only a problem of that service.
    await write(shop(3, login({ limit: 4 })), search(overall()), search(overall()))
    await limiter.refresh()
    expect(await inForce()).toEqual({ login: 4 })
  })

  it("keeps the rules of a service that is missing, for example after a typo in service_id", async () => {
    const { source, write } = await inFile(shop(1, login()), search(overall()))
    const { limiter, said, inForce, metric } = limit(source)
    await limiter.ready()
    const misspelled = { ...shop(2, login({ limit: 3 })), service_id: "shpo" }
    await write(misspelled, search(overall()))
    await expect(limiter.refresh()).rejects.toThrow(InvalidRuleError)
    expect(await inForce()).toEqual({ login: 2 })
    expect(limiter.rules).toMatchObject({ version: 1, isRejected: true })
    expect(await metric("sluice.rule_set.rejected")).toBe(1)
    expect(said).toHaveLength(1)
    expect(said[0]).toMatch(/^SLUICE_RULES_REJECTED .*service "shop"/)
    expect(said[0]).toContain('the file no longer has a document for service "shop"')
    expect(said[0]).toContain('service_id: "shop", and `rules: []` if it has no rules')
    expect(said[0]).toContain('The previous rules stay in force: version 1 with the rule "login".')

    await write(shop(3, login({ limit: 4 })), search(overall()))
    await limiter.refresh()
    expect(await inForce()).toEqual({ login: 4 })
    expect(limiter.rules.isRejected).toBe(false)
  })

  it("provides no rules for a service with an empty document, which can then be deleted", async () => {
    const { source, write } = await inFile(shop(1, login()), search(overall()))
    const { limiter, said, inForce } = limit(source)
    await limiter.ready()
    await write(shop(2), search(overall()))
    await limiter.refresh()
    expect(await inForce()).toEqual({})
    await write(search(overall()), { ...search(overall()), service_id: "third" })
    await limiter.refresh()
    expect(await inForce()).toEqual({})
    expect(said).toEqual([expect.stringMatching(/^SLUICE_RULES_REMOVED /)])
  })

  it.each([["all" as const], ["asked" as const]])(
    "leaves the rules of a missing service in force in a rule book with services %s",
    async (services) => {
      const { source, write } = await inFile(shop(1, login()), search(overall()))
      const logger = { warn() {}, error() {} }
      const book = createRuleBook({ source, services, logger, clock: manualClock() })
      onTestFinished(() => book.close())
      const { inForce } = limit(book)
      await book.ready()
      await write(search(overall()))
      await expect(book.refresh({ service: "shop" })).rejects.toThrow(
        'no longer has a document for service "shop"',
      )
      expect(await inForce()).toEqual({ login: 2 })
      expect(book.statusOf("shop")).toMatchObject({ version: 1, isRejected: true })
      expect(await limit(book).inForce()).toEqual({ login: 2 })
    },
  )
})
