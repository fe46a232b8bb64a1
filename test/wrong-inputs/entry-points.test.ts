import { randomUUID } from "node:crypto"
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { NestFactory } from "@nestjs/core"
import * as paced from "@sluice/client"
import * as contracts from "@sluice/contracts"
import * as core from "@sluice/core"
import * as adapters from "@sluice/core/adapters"
import * as kit from "@sluice/core/kit"
import * as replay from "@sluice/core/replay"
import * as coreRules from "@sluice/core/rules"
import * as stores from "@sluice/core/stores"
import * as testing from "@sluice/core/testing"
import * as dashboard from "@sluice/dashboard"
import * as dynamodb from "@sluice/dynamodb"
import * as express from "@sluice/express"
import { SluiceStore } from "@sluice/express-rate-limit-store"
import * as fastifyAdapter from "@sluice/fastify"
import * as fetch from "@sluice/fetch"
import * as onElysia from "@sluice/fetch/elysia"
import * as onHono from "@sluice/fetch/hono"
import * as onSvelteKit from "@sluice/fetch/sveltekit"
import * as koa from "@sluice/koa"
import * as logs from "@sluice/logs"
import * as nestjs from "@sluice/nestjs"
import * as otel from "@sluice/otel"
import * as recording from "@sluice/recording"
import * as redis from "@sluice/redis"
import * as rules from "@sluice/rules"
import * as scale from "@sluice/scale"
import * as service from "@sluice/service"
import fc from "fast-check"
import fastify from "fastify"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { RULE_MEMBERS } from "../../packages/core/src/rules/parsing/rule-members.ts"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { anyOdd, anyOr, argument, exactly, type Odd, oddFor, oddObject, ReadingFailed } from "./values.ts"

// The tests check a guarantee: a wrong input always causes an error of Sluice with a code, wherever it is passed. A
// wrong input causes no other error, no hang and no unhandled rejection. There are two exceptions: an error that the
// input throws while it is read, and a signal's own reason.

const QUIET = { warn() {}, error() {} }
const client = new DynamoDBClient({ region: "eu-central-1" })
let server: DynamoDBServer
let registry: dynamodb.DynamoDBRegistry

beforeAll(async () => {
  vi.spyOn(console, "warn").mockReturnValue()
  writeFileSync(LOG, LOG_LINE.repeat(3))
  server = await startDynamoDB("dynalite")
  registry = dynamodb.dynamoDBRegistry({ client: server.client(), tableName: "rules" })
  await registry.createTable()
})
afterAll(async () => {
  vi.restoreAllMocks()
  rmSync(LOG)
  client.destroy()
  await server.stop()
})

const RULE = { limit: 5, window: "1 minute", field: "ip" }
const MEMBERS = Object.keys(RULE_MEMBERS)
const GOOD = { limit: 5, window: "1 minute", logger: QUIET }
const OPTIONS = [
  ...MEMBERS,
  ...["rules", "defaultRules", "onRulesMissing", "service", "store", "trustedProxies", "clientIpHeader"],
  ...["ipv6Prefix", "fields", "skip", "onRejected", "refundWhen", "headers", "storeTimeoutMs", "instances"],
  ...["enabled", "logger", "clock", "limiter", "hook"],
]
const STORED_MEMBERS = ["service_id", "Service_id", "version", "rules", "rule"]
const TABLE = { client, tableName: "rules" }
const TABLE_OPTIONS = ["client", "tableName", "keyName", "keyType", "pageSize", "timeoutMs"]

/** Creates the limiter only when the value is read, because the limiter is declared further down. */
const GROUP_REQUEST = {
  get limiter() {
    return limiter()
  },
  request: {},
  cost: 1,
}

type Args = readonly fc.Arbitrary<Odd>[]
const limiterOptions = oddFor(OPTIONS, GOOD)
const frameworkOptions = oddFor(["clientAddress", "facts", ...OPTIONS], GOOD)
const ruleOf = oddFor([...MEMBERS, "rate", "on_missing", "request_rejection_message", "content_type"], RULE)
const storedDocument = fc.oneof(
  oddFor(STORED_MEMBERS, { service_id: "a", rules: [RULE] }),
  ruleOf.map(({ name, make }) => ({ name: `{ rules: ${name} }`, make: () => ({ rules: make() }) })),
)
const fileText = fc
  .oneof(
    fc.json({ maxDepth: 3 }),
    fc.string(),
    fc.constantFrom("null", "[null]", "~", "&a [*a]", "? {}", "!!binary x", "--- 1\n---\n"),
  )
  .map((text) => ({ name: JSON.stringify(text), make: () => text }))

const LOG = join(tmpdir(), `sluice-entry-points-${randomUUID()}.log`)
const LOG_LINE = '192.0.2.1 - - [03/Jun/2025:08:00:00 +0000] "POST /login HTTP/1.1" 401 5\n'
const ADDRESS_OPTIONS = ["trustedProxies", "clientIpHeader", "ipv6Prefix"]
const openedLog = exactly("a log", () => logs.readLogs([LOG]))

const storableRule = oddFor(MEMBERS, RULE)

/** Generates options of `replayLogs` in which one option has the wrong value. */
function membersOf(option: string, odd: fc.Arbitrary<Odd>): fc.Arbitrary<Odd> {
  return odd.map(({ name, make }) => ({
    name: `{ rules, ${option}: ${name} }`,
    make: () => ({ rules: [RULE], [option]: make() }),
  }))
}

const BY_TYPES = "takes only what Sluice has made, so types suffice"
const OF_PACKAGES = "is for packages that extend Sluice, which have checked what they pass"
const OF_THE_SERVICE = "is a part of the service's program"
const OF_TESTS = "declares tests and runs in a test file"

/** Returns the same reason for all functions of an entry point for packages, which are not tested here. */
function ofPackages(entry: object): Record<string, string> {
  return Object.fromEntries(functionsOf(entry).map((name) => [name, OF_PACKAGES]))
}

/** The arguments of each exported function, or the reason why this file has none. Error classes are not included. */
const EXPORTS: Readonly<Record<string, readonly [module: object, Readonly<Record<string, Args | string>>]>> =
  {
    "@sluice/core": [
      core,
      {
        addressGroup: [anyOdd],
        createLimiter: [limiterOptions],
        decideAll: [oddFor(["limiter", "request", "cost"], GROUP_REQUEST)],
        memoryStore: [oddFor(["maxKeys", "clock"])],
        withoutCredentials: BY_TYPES,
        exposedHeaders: [anyOdd],
        decisionOn: [anyOdd],
        explainDecision: [oddFor(["allowed", "checks", "shadowed", "refusal"]), oddFor(["atMs"])],
        logFields: [oddFor(["allowed", "checks", "shadowed", "refusal"])],
        withExactNumbers: BY_TYPES,
      },
    ],
    "@sluice/core/stores": [
      stores,
      {
        ...ofPackages(stores),
        transactionalStore: [oddFor(["transact", "isShared", "close"], { transact() {} })],
      },
    ],
    "@sluice/core/adapters": [
      adapters,
      {
        ...ofPackages(adapters),
        createGuard: [limiterOptions],
        clientAddressReader: [oddFor(ADDRESS_OPTIONS)],
      },
    ],
    "@sluice/client": [
      paced,
      {
        paced: [
          anyOr("a fetch", () => globalThis.fetch),
          oddFor([
            ...["key", "maxWaitMs", "maxWaiting", "retries", "retryBudget", "idempotent", "limit", "share"],
          ]),
        ],
      },
    ],
    "@sluice/dynamodb": [
      dynamodb,
      {
        dynamoDBRules: [oddFor([...TABLE_OPTIONS, "pollMs"], TABLE)],
        dynamoDBRegistry: [oddFor(TABLE_OPTIONS, TABLE)],
      },
    ],
    "@sluice/core/kit": [kit, ofPackages(kit)],
    "@sluice/core/rules": [coreRules, ofPackages(coreRules)],
    "@sluice/rules": [
      rules,
      {
        createRuleBook: [
          oddFor(
            [
              "source",
              "pollMs",
              "staleAfterMs",
              "maxUnknown",
              "all",
              "defaultRules",
              "onRulesMissing",
              "clock",
              "logger",
            ],
            { source: rules.staticRules([]) },
          ),
        ],
        fileRules: [anyOr("a path", () => "rules.yaml"), oddFor(["maxBytes", "pollMs", "required"])],
        staticRules: [oddFor(MEMBERS, RULE)],
        parseRuleDocument: [storedDocument],
        readRuleDocument: [storedDocument],
        readRuleDocumentInSlices: [storedDocument],
        readRuleFile: [
          argument(anyOdd, fileText),
          argument(anyOdd, fc.oneof(...["json", "yaml"].map((format) => exactly(format, () => format)))),
        ],
        formatRuleDocument: [
          anyOr("a service", () => "a"),
          oddFor(MEMBERS, RULE),
          anyOdd,
          oddFor(["owner", "description", "contact", "link"]),
        ],
        formatRuleDocumentInSlices: [
          anyOr("a service", () => "a"),
          oddFor(MEMBERS, RULE),
          anyOdd,
          oddFor(["owner", "description", "contact", "link"]),
        ],
        liveRules: [oddFor(["load", "loadSync", "watch", "pollMs", "name"])],
        ruleName: BY_TYPES,
        exactNumber: BY_TYPES,
        parseJsonText: OF_PACKAGES,
      },
    ],
    "@sluice/otel": [
      otel,
      {
        instrument: [
          argument(
            oddFor(["on", "off", "status"]),
            exactly("a limiter", () => core.createLimiter(GOOD)),
          ),
          oddFor(["meterProvider", "name"]),
        ],
      },
    ],
    "@sluice/logs": [
      { ...logs, readLogs: iterated, readLines: iteratedLines },
      {
        readLines: [anyOr("a log", () => [LOG])],
        readLogs: [anyOr("a log", () => [LOG]), oddFor(["format", "map", "reorderMs", "withoutStatus"])],
        replayLogs: [
          argument(oddFor(["summary"], logs.readLogs([LOG])), openedLog),
          fc.oneof(
            oddFor(
              [
                ...["rules", "service", "against", "algorithms", "maxRefused", "maxRefusedClients", "never"],
                ...["maxNewlyRefused", "slightly", "far", "maxKeys", "hashKeys", "skipUnjudged"],
                ...ADDRESS_OPTIONS,
              ],
              { rules: [RULE], against: { name: "before", rules: [RULE] } },
            ),
            membersOf("against", oddFor(["name", "rules"], { name: "before", rules: [RULE] })),
            membersOf("never", oddFor(["name", "text"], { name: "partners", text: "192.0.2.1" })),
            storableRule.map(({ name, make }) => ({
              name: `{ rules: ${name} }`,
              make: () => ({ rules: make() }),
            })),
          ),
        ],
        replayLines: BY_TYPES,
        replayReport: BY_TYPES,
        suggestLimits: [
          argument(
            fc.oneof(
              anyOdd,
              anyOdd.map(({ name, make }) => ({ name: `() => ${name}`, make: () => make })),
            ),
            exactly("a function that opens a log", () => () => logs.readLogs([LOG])),
          ),
          fc.oneof(
            oddFor(
              [
                ...["by", "windows", "algorithm", "refuseAtMost", "maxClients", "matchFrom", "capacity"],
                ...["hashKeys", ...ADDRESS_OPTIONS],
              ],
              { by: ["ip"], matchFrom: [{ ...RULE, match: { path: "/login" } }] },
            ),
            storableRule.map(({ name, make }) => ({
              name: `{ matchFrom: ${name} }`,
              make: () => ({ matchFrom: make() }),
            })),
          ),
        ],
        suggestedRules: BY_TYPES,
        suggestedRulesFile: BY_TYPES,
        suggestedStoredRules: BY_TYPES,
        suggestLines: BY_TYPES,
      },
    ],
    "@sluice/core/replay": [
      replay,
      {
        createReplay: [
          oddFor(["rules", "service", "fields", "maxKeys", "trustedProxies", "ipv6Prefix"], {
            rules: [RULE],
          }),
        ],
      },
    ],
    "@sluice/core/testing": [
      testing,
      {
        manualClock: [anyOdd],
        expectLimited: "rejects with what the request throws; expect-limited.test.ts has wrong arguments",
      },
    ],
    "@sluice/dashboard": [
      dashboard,
      {
        recordActivity: [anyOr("a limiter", () => limiter()), oddFor(["shared", "clock"])],
        dashboard: [
          anyOr("a limiter", () => limiter()),
          oddFor(["authorize", "keys", "path", "logger", "clock"]),
        ],
        mergeActivity: "takes snapshots; its type says which",
      },
    ],
    "@sluice/recording": [
      recording,
      {
        recordDecisions: [
          anyOr("a limiter", () => limiter()),
          anyOr("a sink", () => () => {}),
          oddFor(["maxWaiting", "batchSize", "intervalMs", "logger", "clock"]),
        ],
        jsonLinesSink: "would create a file for each string; json-lines.test.ts has wrong destinations",
      },
    ],
    "@sluice/redis": [
      redis,
      {
        redisStore: [oddFor(["client", "prefix", "denyCacheMs", "timeoutMs", "clock"])],
        redisKey: BY_TYPES,
        redisOverHttp: [oddFor(["url", "token"])],
        redisActivity: [oddFor(["client", "prefix"])],
      },
    ],
    "@sluice/scale": [
      scale,
      {
        leasedStore: [
          anyOr("a shared store", () => Object.assign(core.memoryStore(), { isShared: true })),
          oddFor(["leaseMs", "leastLimit", "rules", "clock"]),
        ],
        mirroredStore: [
          oddFor(["near", "far", "everyMs", "rules", "clock"], {
            near: Object.assign(core.memoryStore(), { isShared: true }),
            far: { eu: Object.assign(core.memoryStore(), { isShared: true }) },
          }),
        ],
        writeBackStore: [
          anyOr("a shared store", () => Object.assign(core.memoryStore(), { isShared: true })),
          oddFor(["settleMs", "instances", "maxKeys", "rules", "clock"]),
        ],
      },
    ],
    "@sluice/express": [express, { rateLimit: [limiterOptions] }],
    "@sluice/express-rate-limit-store": [
      { SluiceStore: initialized },
      {
        SluiceStore: [
          oddFor([
            ...["client", "store", "prefix", "algorithm", "align", "buckets", "burst", "refill", "penalty"],
            ...["countRejected", "largestLimit", "instances", "storeTimeoutMs"],
          ]),
          oddFor(["limit", "windowMs"], { limit: 5, windowMs: 60_000 }),
        ],
      },
    ],
    "@sluice/fetch": [
      fetch,
      {
        contextOf: [anyOdd],
        fromBun: BY_TYPES,
        fromDeno: BY_TYPES,
        fromH3: BY_TYPES,
        fromProxies: BY_TYPES,
        rateLimit: [
          oddFor(["clientAddress", "facts", ...OPTIONS], { ...GOOD, clientAddress: () => undefined }),
        ],
      },
    ],
    "@sluice/fetch/elysia": [onElysia, { rateLimit: [frameworkOptions] }],
    "@sluice/fetch/hono": [onHono, { rateLimit: [frameworkOptions] }],
    "@sluice/fetch/sveltekit": [onSvelteKit, { rateLimit: [frameworkOptions] }],
    "@sluice/koa": [koa, { rateLimit: [limiterOptions] }],
    "@sluice/fastify": [
      { rateLimit: registered },
      {
        rateLimit: [
          argument(
            oddObject(OPTIONS, GOOD),
            exactly("good options", () => GOOD),
          ),
          oddFor(MEMBERS, RULE),
        ],
      },
    ],
    "@sluice/nestjs": [
      { forRoot: startedByNest },
      {
        forRoot: [
          argument(
            oddObject(OPTIONS, GOOD),
            exactly("good options", () => GOOD),
          ),
          oddFor(MEMBERS, RULE),
        ],
      },
    ],
    "@sluice/service": [
      service,
      {
        rulesInTable: [oddFor([...TABLE_OPTIONS, "pollMs", "consistentRead"], TABLE)],
        fileFirst: OF_THE_SERVICE,
        auditTo: OF_THE_SERVICE,
        createDecisionService: OF_THE_SERVICE,
        rulesInMemory: OF_THE_SERVICE,
        tokens: OF_THE_SERVICE,
      },
    ],
    "@sluice/contracts": [
      contracts,
      {
        registryContract: OF_TESTS,
        ruleSourceContract: OF_TESTS,
        storeContract: OF_TESTS,
        storeExpiryContract: OF_TESTS,
      },
    ],
  }

/**
 * Registers the plugin on a new app. Fastify itself refuses or calls options that are not an object, before the
 * plugin receives them.
 */
async function registered(options: object, ofRoute: unknown): Promise<void> {
  const app = fastify()
  try {
    await app.register(fastifyAdapter.rateLimit, options as never)
    app.get("/", { config: { rateLimit: ofRoute as never } }, async () => "")
    await app.ready()
  } finally {
    await app.close()
  }
}

/** Starts an app of Nest with the module, and with a controller that has the rule. */
async function startedByNest(options: object, ofHandler: unknown): Promise<void> {
  class Handlers {
    handle() {}
  }
  nestjs.RateLimit(ofHandler as never)(Handlers)
  const root = { ...nestjs.RateLimitModule.forRoot(options as never), controllers: [Handlers] }
  const app = await NestFactory.createApplicationContext(root, { logger: false, abortOnError: false })
  await app.close()
}

/** Reads all lines of the files. */
async function iteratedLines(...args: unknown[]): Promise<void> {
  for await (const _ of logs.readLines(...(args as Parameters<typeof logs.readLines>)));
}

/** Reads all requests of the logs. */
async function iterated(...args: unknown[]): Promise<void> {
  for await (const _ of logs.readLogs(...(args as Parameters<typeof logs.readLogs>)));
}

/** Creates a store, passes it the options of express-rate-limit, and counts a hit. */
async function initialized(options: object, ofLimiter: unknown): Promise<void> {
  const store = new SluiceStore(options)
  try {
    store.init({ limit: 5, windowMs: 60_000, ...(ofLimiter as object), logger: QUIET } as never)
    await store.increment("ann")
  } finally {
    await store.shutdown()
  }
}

type Function = (...args: unknown[]) => unknown
type MethodsOf<Type> = {
  [Name in keyof Type]-?: Type[Name] extends Function | ((...args: never) => unknown) ? Name : never
}[keyof Type]

/** Reads every fact of a request that a rule can use. */
const limiter = () =>
  core.createLimiter({
    ...GOOD,
    limit: 50,
    field: ["header:x", "query:q", "body:a.b", "param:p", "cookie:c", "route", "method", "ip"],
    onMissing: "shared",
    match: { path: "/*rest", fields: { "header:y": ["1"] } },
    trustedProxies: 1,
    clock: testing.manualClock(),
  })
const FACTS = [
  "method",
  "url",
  "route",
  "headers",
  "query",
  "params",
  "body",
  "cookies",
  "remoteAddress",
  "socket",
]
const FACTS_GOOD = { url: "/a?q=1", headers: { x: "1", y: "1" }, remoteAddress: "192.0.2.1" }
const request = argument(
  oddFor(FACTS, FACTS_GOOD),
  exactly("a request", () => FACTS_GOOD),
)
const decision = oddFor(["allowed", "checks", "policy"])
const callOptions = oddFor([
  "cost",
  "priority",
  "signal",
  "maxWaitMs",
  "maxWaiting",
  "policies",
  "retry",
  "service",
  "version",
])
const event = anyOr("an event", () => "warning")
const name = anyOr("a service", () => "a")

const LIMITER = {
  decide: [request, callOptions],
  enforce: [request, callOptions],
  acquire: [request, callOptions],
  run: [request, anyOdd, callOptions],
  takeUpTo: [request, anyOdd],
  client: [anyOdd, anyOdd],
  peek: [request, callOptions],
  explain: [request, callOptions],
  refund: [decision],
  release: [decision],
  reserve: [decision],
  settleReservation: [anyOdd, oddFor(["used", "refund"], {})],
  renewReservation: [anyOdd],
  settle: [decision, anyOdd],
  reset: [request, callOptions],
  block: [request, oddFor(["for", "rules"], { for: "1 minute" })],
  unblock: [request, oddFor(["rules"], {})],
  grant: [request, anyOdd, oddFor(["rules"], {})],
  usage: [request, oddFor(["rules"], {})],
  ready: [callOptions],
  refresh: [callOptions],
  on: [event, anyOdd],
  off: [event, anyOdd],
  decisionOn: [anyOdd],
  close: [anyOdd],
} satisfies Record<MethodsOf<core.Limiter>, Args>

/** Only limiters call `open`, with arguments that they have checked. */
const BOOK = {
  rulesOf: [name],
  find: [name, callOptions],
  statusOf: [name],
  ready: [callOptions],
  refresh: [callOptions],
  on: [event, anyOdd],
  off: [event, anyOdd],
  close: [anyOdd],
} satisfies Record<Exclude<MethodsOf<rules.RuleBook>, "open">, Args>

const REGISTRY = {
  register: [name, oddFor(MEMBERS, RULE), callOptions],
  get: [name, callOptions],
  list: [callOptions],
  remove: [name, callOptions],
  createTable: [callOptions],
} satisfies Record<MethodsOf<dynamodb.DynamoDBRegistry>, Args>

const PACED = {
  on: [event, anyOdd],
  status: [anyOdd],
  close: [anyOdd],
} satisfies Record<MethodsOf<paced.PacedFetch>, Args>

/** `wait` ends when the test advances the clock, and only limiters call `onReset`. */
const CLOCK = { now: [], advance: [anyOdd], set: [anyOdd], resetAll: [] } satisfies Record<
  Exclude<MethodsOf<testing.ManualClock>, "wait" | "onReset">,
  Args
>

async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    const made = await call()
    // The wrong input's own close() may throw.
    await end(made).catch(() => undefined)
  } catch (error) {
    return error
  }
  return undefined
}

/** Closes the result of an entry point. */
async function end(made: unknown): Promise<void> {
  if ((typeof made !== "object" && typeof made !== "function") || made === null) return
  const { close, limiter: own } = made as { close?: () => unknown; limiter?: core.Limiter }
  await (typeof close === "function" ? close.call(made) : own?.close())
}

/** True for an error with a code and a remedy, and for an error that the input itself has thrown. */
function isPromised(error: unknown): boolean {
  if (error === undefined || error instanceof ReadingFailed) return true
  if (error instanceof core.InvalidOptionError || error instanceof core.InvalidRuleError)
    return error.problems.every(
      ({ message, accepted }) =>
        accepted !== undefined || /; (?:did you mean|it is|the nearest is) /.test(message),
    )
  const isOurs = error instanceof core.SluiceError || error instanceof paced.PaceError
  return isOurs && /^SLUICE_[A-Z_]+$/.test(error.code)
}

async function fuzz(call: Function, args: Args): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.tuple(...args), async (odds) => {
      const error = await errorOf(() => call(...odds.map(({ make }) => make())))
      const shown = error instanceof Error ? error.stack : String(error)
      expect(isPromised(error), `${odds.map((odd) => odd.name).join(" | ")}\n${shown}`).toBe(true)
    }),
    { numRuns: Number(process.env.RUNS ?? 60), timeout: 20_000 },
  )
}

/** Returns a function that calls the method on a new object and closes the object afterwards. */
function method(make: () => object, name: string): Function {
  return async (...args) => {
    const made = make()
    try {
      const returned = await (made as Record<string, Function>)[name]?.(...args)
      // A generator runs when it is iterated.
      if (name === "list") for await (const _each of returned as AsyncIterable<unknown>);
    } finally {
      await end(made)
    }
  }
}

const CALLED = Object.entries(EXPORTS).flatMap(([path, [module, entries]]) =>
  Object.entries(entries).flatMap(([name, args]): [string, Function, Args][] =>
    typeof args === "string"
      ? []
      : [[`${name} of ${path}`, (module as Record<string, Function>)[name] as Function, args]],
  ),
)

describe("a wrong argument causes an error with a code", () => {
  it.each(CALLED)("in %s", (_name, call, args) => fuzz(call, args))
})

describe.each([
  ["a limiter", limiter, LIMITER],
  ["a rule book", () => rules.createRuleBook({ source: rules.staticRules([]), logger: QUIET }), BOOK],
  ["a registry", () => registry, REGISTRY],
  ["a manual clock", () => testing.manualClock(), CLOCK],
  ["a paced fetch", () => paced.paced(async () => new Response("ok")), PACED],
] as const)("a wrong argument to a method of %s causes an error with a code", (_name, make, methods) => {
  it.each(Object.entries(methods as Record<string, Args>))("in %s", (name, args) =>
    fuzz(method(make, name), args),
  )
})

describe("a wrong value in a paced call causes an error with a code", () => {
  const ok = async () => new Response("ok")

  it("in the option pace", () =>
    fuzz(
      (pace) => paced.paced(ok)("http://localhost", { pace } as never),
      [oddFor(["key", "maxWaitMs", "retries"])],
    ))

  it.each(["key", "idempotent"])("in the result of the function %s", (name) =>
    fuzz(
      (returned) => paced.paced(ok, { [name]: () => returned })("http://localhost"),
      [anyOr("a string", () => "a")],
    ),
  )
})

describe("the entry points in this file", () => {
  it("cover every entry point of every package", () => {
    const root = new URL("../../packages/", import.meta.url)
    const modules = readdirSync(root).flatMap((folder) => {
      const { name, exports } = JSON.parse(readFileSync(new URL(`${folder}/package.json`, root), "utf8"))
      const paths = Object.keys(exports).filter((path) => !/json$|\*$/.test(path))
      return paths.map((path) => name + path.slice(1))
    })
    expect(Object.keys(EXPORTS).sort()).toEqual(modules.sort())
  })

  it.each(Object.entries(EXPORTS))(
    "contain arguments for every function of %s",
    (_name, [module, entries]) => {
      expect(Object.keys(entries).sort()).toEqual(functionsOf(module).sort())
    },
  )
})

/** Returns the names of the functions and classes of a module, except error classes. */
function functionsOf(module: object): string[] {
  const functions = Object.entries(module).filter(([, value]) => typeof value === "function")
  return functions.filter(([, { prototype }]) => !(prototype instanceof Error)).map(([name]) => name)
}

describe("a limiter that accepts a wrong option", () => {
  // These options may legitimately disable the limit or replace it.
  const members = OPTIONS.filter(
    (name) => !["skip", "cost", "shadow", "enabled", "limiter", "rules"].includes(name),
  )

  it("still enforces its limit", async () => {
    await fc.assert(
      fc.asyncProperty(oddObject(members), async ({ name, make }) => {
        const odd = make() as object
        let made: core.Limiter
        try {
          made = core.createLimiter({ limit: 1, window: "1 minute", logger: QUIET, ...odd } as never)
        } catch {
          return
        }
        const decisions = [
          await made.decide(FACTS_GOOD),
          await made.decide(FACTS_GOOD),
          await made.decide(FACTS_GOOD),
        ]
        expect(decisions.at(-1)?.allowed, name).toBe(false)
        await made.close()
      }),
      { numRuns: 300 },
    )
  })
})
