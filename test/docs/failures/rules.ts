import { mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createLimiter } from "@sluice/core"
import { dynamoDBRegistry, dynamoDBRules } from "@sluice/dynamodb"
import { instrument } from "@sluice/otel"
import { fileRules, liveRules, type RuleSource } from "@sluice/rules"
import type { TestContext } from "vitest"
import { startMetering } from "../../otel/metering.ts"
import { startDynamoDB } from "../../servers/dynamodb.ts"
import { type Fault, startFaultProxy } from "../../servers/fault-proxy.ts"

const RULES = [
  { name: "first", field: "service", limit: 5, window: "1 minute" },
  { name: "second", field: "service", limit: 9, window: "1 minute" },
]

/** Registers a function to call when the test ends. The context of a concurrent test provides such a function. */
type OnTestFinished = TestContext["onTestFinished"]

/** Rules that are valid at first, and a function that breaks them. */
interface Opened {
  readonly source: RuleSource
  fail(): unknown
}

/** Creates a rules file. `fail` replaces its text with `next`, or removes the file if `next` is undefined. */
async function file(onTestFinished: OnTestFinished, next: string | undefined): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-docs-"))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, "rules.yaml")
  await writeFile(path, documentOf())
  return {
    source: fileRules(path),
    async fail() {
      if (next === undefined) return rm(path)
      // Replace the file as a whole, so that a half-written file is never read.
      await writeFile(`${path}.new`, next)
      return rename(`${path}.new`, path)
    },
  }
}

/** Returns the document of the rules. `limits` replaces the limits in the document. */
function documentOf(...limits: readonly number[]): string {
  const rules = RULES.map((rule, at) => ({ ...rule, limit: limits[at] ?? rule.limit }))
  return JSON.stringify({ service_id: "shop", rules })
}

async function table(onTestFinished: OnTestFinished, fault: Fault): Promise<Opened> {
  const server = await startDynamoDB()
  onTestFinished(() => server.stop())
  const proxy = await startFaultProxy(server)
  onTestFinished(() => proxy.stop())
  const registry = dynamoDBRegistry({ client: server.client(), tableName: "rules" })
  await registry.createTable()
  await registry.register("shop", RULES)
  const client = server.client({ endpoint: proxy.endpoint, maxAttempts: 1 })
  return {
    source: dynamoDBRules({ client, tableName: "rules", timeoutMs: 1_000 }),
    fail() {
      proxy.fault = () => fault
    },
  }
}

/** The failures, by their names in the guide. */
export const RULE_FAILURES: Readonly<Record<string, (onTestFinished: OnTestFinished) => Promise<Opened>>> = {
  "the file is gone": (finished) => file(finished, undefined),
  "the file is not YAML": (finished) => file(finished, "rules: ["),
  "every rule is wrong": (finished) => file(finished, documentOf(-1, -1)),
  "one rule is wrong": (finished) => file(finished, documentOf(-1)),
  "the file no longer has the service": (finished) =>
    file(finished, documentOf().replace('"shop"', '"shpo"')),
  "DynamoDB throttles": (finished) => table(finished, "throttle"),
  "DynamoDB cannot be reached": (finished) => table(finished, "reset"),
  "DynamoDB does not respond": (finished) => table(finished, "hang"),
}

/** The observed decisions and codes after the rules have broken. */
interface Seen {
  /** The names of the rules that apply. */
  readonly inForce: readonly string[]
  readonly errors: Readonly<Record<string, number>>
  readonly problems: number | undefined
  /** The codes that have been logged since then. */
  readonly codes: readonly string[]
}

/** Loads rules, breaks them, refreshes them twice, and makes a decision. */
export async function breakRules(what: string, onTestFinished: OnTestFinished): Promise<Seen> {
  const open = RULE_FAILURES[what]
  if (open === undefined) throw new Error(`nobody knows how "${what}"`)
  const { source, fail } = await open(onTestFinished)
  const codes: string[] = []
  const log = ({ code }: { readonly code: string }): void => void codes.push(code)
  const limiter = createLimiter({
    rules: liveRules(source),
    onRulesMissing: "allow",
    service: "shop",
    logger: { warn: log, error: log },
  })
  onTestFinished(() => limiter.close())
  const metering = startMetering()
  instrument(limiter, { meterProvider: metering.meterProvider })
  await limiter.ready()
  await fail()
  for (let times = 0; times < 2; times++) await limiter.refresh().catch(() => undefined)
  const { checks } = await limiter.decide({})
  return {
    inForce: checks.map(({ policy }) => policy),
    errors: await metering.values("sluice.rule_set.errors", "error.type"),
    problems: (await metering.values("sluice.rule_set.problems"))[""],
    codes,
  }
}
