import bodyParser from "@koa/bodyparser"
import {
  createLimiter,
  InvalidOptionError,
  type Limiter,
  type RequestFacts,
  type Rule,
  StoreUnavailableError,
} from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import {
  type Dashboard,
  type DashboardChange,
  type DashboardOptions,
  type DashboardSource,
  dashboard,
  recordActivity,
} from "@sluice/dashboard"
import { redisStore } from "@sluice/redis"
import cors from "cors"
import express from "express"
import { Redis } from "ioredis"
import { afterEach, describe, expect, it, vi } from "vitest"
import { until } from "../servers/until.ts"
import {
  type Call,
  FETCH,
  FRAMEWORKS,
  type Framework,
  inExpress,
  inKoa,
  type Mounted,
  send,
} from "./dashboard-servers.ts"

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const TOKEN = "a token of 24 characters"
/** Two addresses with the hash "b947d9b8" under the secret of the test. */
const COLLIDING = ["10.0.86.106", "10.0.100.32"] as const
const RULES: readonly Rule[] = [{ name: "per-client", field: "ip", limit: 1, window: "1 minute" }]
const QUIET = { warn() {}, error() {}, info() {} }
const node = FRAMEWORKS[0] as Framework

interface Options extends DashboardOptions<never> {
  readonly rules?: readonly Rule[]
  readonly mount?: (page: Dashboard) => Promise<Mounted>
}

/** Serves a dashboard whose limiter has refused 192.0.2.7, and returns functions that search and change. */
async function serve({ rules = RULES, mount = node.mount, ...options }: Options = {}) {
  const clock = manualClock()
  const limiter = createLimiter<RequestFacts>({ rules: [...rules], clock, service: "shop", logger: QUIET })
  const page = dashboard<never>(limiter, { clock, path: "/limits", logger: QUIET, ...options })
  const server = await mount(page)
  closing.push(() => limiter.close(), page.close, server.close)
  const { port } = server
  const decide = (remoteAddress = "192.0.2.7") => limiter.decide({ remoteAddress, headers: {} })
  await decide()
  await decide()
  return { clock, limiter, decide, page, port, ...callsTo(port) }
}

const OWN = { "content-type": "application/json", "x-sluice-dashboard": "1", "sec-fetch-site": "same-origin" }

function callsTo(port: number) {
  const post = (
    path: string,
    body: object | string,
    headers: Call["headers"] = {},
    leftOut: readonly string[] = [],
  ) => {
    const all = Object.entries({ ...OWN, ...headers }).filter(([name]) => !leftOut.includes(name))
    const text = typeof body === "string" ? body : JSON.stringify(body)
    return send(port, `/limits/${path}`, { method: "POST", headers: Object.fromEntries(all), body: text })
  }
  const find = async (key: string) => JSON.parse((await post("find", { key })).body)
  /** Makes a change of the first client that the search finds, or of the one under the rule. */
  const change = async (
    action: string,
    {
      key = "192.0.2.7",
      rule,
      token = TOKEN,
      ...more
    }: { key?: string; rule?: string; token?: string; for?: string; units?: string } = {},
  ) => {
    const { clients } = await find(key)
    const client = clients.find((each: { rule: string }) => rule === undefined || each.rule === rule)
    const body = {
      action,
      service: "shop",
      rule: client?.rule ?? rule,
      id: client?.id ?? "",
      text: key,
      for: "1 hour",
      ...more,
    }
    return post("change", body, { "x-sluice-token": token })
  }
  return { post, find, change }
}

describe("who may change a client", () => {
  const LOCAL = { "authorize that returns true": () => true, "no authorize": undefined } as const
  const ACCESS: Readonly<Record<string, DashboardOptions["authorize"]>> = {
    ...LOCAL,
    "authorize that returns false": () => false,
    "authorize that fails": () => Promise.reject(new Error("no session")),
    'authorize that returns "operator"': () => "operator",
    'authorize that resolves with "operator"': async () => "operator" as const,
    'authorize that returns "admin"': () => "admin" as never,
  }
  const TOKENS: Readonly<Record<string, DashboardOptions["token"]>> = {
    "no token": undefined,
    "a token": TOKEN,
    "a function": (token, service) => token === TOKEN && service === "shop",
    "an async function": async (token) => token === TOKEN,
    "a function that fails": () => Promise.reject(new Error("no table")),
    "a function that returns the token": ((token: string) => token) as never,
  }
  const table = Object.keys(ACCESS).flatMap((access) =>
    Object.keys(TOKENS).flatMap((option) =>
      ["no", "a wrong", "the right"].map((sent) => {
        const isOpen = !/false|fails|admin/.test(access)
        const isOperator = access.includes('"operator"')
        const isRight =
          sent === "the right" && ["a token", "a function", "an async function"].includes(option)
        return [access, option, sent, isOpen && (isOperator || isRight) ? 200 : 403] as const
      }),
    ),
  )

  it.each(table)("with %s, the option %s, and %s token sent: %i", async (access, option, sent, status) => {
    const { post, limiter, decide, clock } = await serve({
      authorize: ACCESS[access] as never,
      token: TOKENS[option],
      keys: "shown",
    })
    clock.advance(120_000)
    const headers: Record<string, string> =
      sent === "no" ? {} : { "x-sluice-token": sent === "the right" ? TOKEN : `${TOKEN}!` }
    const body = {
      action: "blocked",
      service: "shop",
      rule: "per-client",
      id: "192.0.2.7",
      text: "",
      for: "1 hour",
    }
    const response = await post("change", body, headers)
    expect(response.status).toBe(status)
    expect((await limiter.peek({ remoteAddress: "192.0.2.7" })).refusal).toBe(
      status === 200 ? "blocked" : undefined,
    )
    await decide()
  })

  it("is shown with the results of a search", async () => {
    const shown = async (options: Options) => (await (await serve(options)).find("192.0.2.7")).operator
    expect(await shown({})).toBe("no")
    expect(await shown({ token: TOKEN })).toBe("token")
    expect(await shown({ authorize: (() => "operator") as never, token: TOKEN })).toBe("yes")
  })
})

describe("a request of another origin", () => {
  const attempts: readonly (readonly [string, Call["headers"], readonly string[], number])[] = [
    ["without the page's header", {}, ["x-sluice-dashboard"], 403],
    ["without the type of JSON", { "content-type": "text/plain" }, [], 415],
    ["without any type", {}, ["content-type"], 415],
    ["as a form", { "content-type": "application/x-www-form-urlencoded" }, [], 415],
    ["as cross-site", { "sec-fetch-site": "cross-site" }, [], 403],
    ["of another subdomain", { "sec-fetch-site": "same-site" }, [], 403],
    ["as a navigation", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, [], 403],
    // Browsers leave Sec-Fetch-Site out if the page has a plain HTTP address.
    ["to a plain HTTP address", { origin: "http://attacker.example" }, ["sec-fetch-site"], 403],
    ["from a sandboxed frame", { origin: "null" }, ["sec-fetch-site"], 403],
    ["from the page itself", {}, [], 200],
    ["from the page itself at a plain HTTP address", { origin: "http://localhost" }, ["sec-fetch-site"], 200],
  ]

  it.each(attempts)("%s", async (_name, headers, leftOut, status) => {
    // The visitor is an operator by a cookie or an address, and the app allows all origins.
    const mount = (page: Dashboard) =>
      inExpress(express, page, (app) => void app.use(cors({ credentials: true, origin: true })))
    const { post, limiter } = await serve({
      authorize: (() => "operator") as never,
      mount,
      path: undefined,
      keys: "shown",
    })
    const body = {
      action: "blocked",
      service: "shop",
      rule: "per-client",
      id: "192.0.2.7",
      text: "",
      for: "1 hour",
    }
    const all = { host: "localhost", ...headers }
    expect((await post("change", body, all, leftOut)).status).toBe(status)
    expect((await post("find", { key: "192.0.2.7" }, all, leftOut)).status).toBe(status)
    expect((await limiter.peek({ remoteAddress: "192.0.2.7" })).refusal).toBe(
      status === 200 ? "blocked" : "quota",
    )
  })

  it("cannot read the data at a plain HTTP address", async () => {
    const { port } = await serve()
    const status = async (headers: Record<string, string>) =>
      (await send(port, "/limits/overview.json", { headers })).status
    expect(await status({ host: "localhost", origin: "http://attacker.example" })).toBe(403)
    expect(await status({ host: "localhost", origin: "http://localhost" })).toBe(200)
  })

  it("cannot make a change by a link or a form", async () => {
    const { port } = await serve({ authorize: (() => "operator") as never })
    for (const method of ["GET", "HEAD", "PUT"]) {
      const { status, headers } = await send(port, "/limits/change?action=reset", { method })
      expect([status, headers.allow]).toEqual([405, "POST"])
    }
  })
})

describe("the option token", () => {
  it.each([`${TOKEN}\n`, ` ${TOKEN}`, `${TOKEN}é`])("cannot be %j, which no browser can send", (token) => {
    const limiter = createLimiter({ rules: [...RULES], service: "shop" })
    closing.push(() => limiter.close())
    expect(() => dashboard(limiter, { token })).toThrow("of ASCII, without white space at its ends")
  })
})

describe("wrong tokens", () => {
  it("are refused after ten in a minute, with the right one, and are reported once", async () => {
    const lines: [unknown, string][] = []
    const logger = {
      ...QUIET,
      warn: (fields: unknown, message: string) => void lines.push([fields, message]),
    }
    const { change, post, clock, limiter } = await serve({ token: TOKEN, keys: "shown", logger })
    const body = {
      action: "blocked",
      service: "shop",
      rule: "per-client",
      id: "192.0.2.7",
      text: "",
      for: "1 hour",
    }
    for (let right = 0; right < 15; right++) {
      expect((await change("reset")).status).toBe(200)
      clock.advance(1_000)
    }
    clock.advance(120_000)
    // At the same time, because a comparison may wait.
    const tries = Array.from({ length: 15 }, () => post("change", body, { "x-sluice-token": `${TOKEN}!` }))
    const statuses = (await Promise.all(tries)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 403)).toHaveLength(10)
    expect(statuses.filter((status) => status === 429)).toHaveLength(5)
    const late = await post("change", body, { "x-sluice-token": TOKEN })
    expect([late.status, late.body]).toEqual([
      429,
      expect.stringMatching(/^There were too many wrong tokens. Try again in \d+ s.$/),
    ])
    expect(Number(late.headers["retry-after"])).toBeLessThanOrEqual(60)
    expect((await limiter.peek({ remoteAddress: "192.0.2.7" })).allowed).toBe(true)
    expect(lines).toEqual([
      [{ code: "SLUICE_DASHBOARD_GUESSED" }, expect.stringContaining("10 wrong tokens")],
    ])
    clock.advance(120_000)
    expect((await post("change", body, { "x-sluice-token": TOKEN })).status).toBe(200)
    expect(JSON.stringify(lines)).not.toContain(TOKEN)
  })

  it("are refused without counting if no token is sent", async () => {
    const { post } = await serve({ token: TOKEN })
    const body = { action: "reset", service: "shop", rule: "per-client", id: "x", text: "" }
    const { status, body: text } = await post("change", body)
    expect([status, text]).toEqual([403, "Only an operator may change clients. Enter the token."])
  })
})

const parsing: readonly Framework[] = [
  {
    name: "Express with a parser",
    mount: (page) => inExpress(express, page, (app) => void app.use(express.json())),
  },
  { name: "Koa with a parser", path: "/limits", mount: (page) => inKoa(page, bodyParser()) },
]

describe.each([...FRAMEWORKS, FETCH, ...parsing])("an operator in $name", ({ mount, path }) => {
  it("blocks, unblocks and resets a client, and sees the new state", async () => {
    const { change, find, decide } = await serve({ authorize: (() => "operator") as never, mount, path })
    const blocked = await change("blocked")
    expect(blocked.status).toBe(200)
    const state = {
      isCounted: true,
      shadow: false,
      degraded: false,
      limit: 1,
      remaining: 0,
      refusal: "blocked",
    }
    expect(JSON.parse(blocked.body)).toMatchObject({ ...state, retryAfterMs: 3_600_000 })
    expect((await decide()).refusal).toBe("blocked")
    expect((await find("192.0.2.7")).clients[0].state).toEqual(JSON.parse(blocked.body))
    expect(JSON.parse((await change("unblocked")).body)).toMatchObject({ refusal: "quota", remaining: 0 })
    expect((await decide()).refusal).toBe("quota")
    const reset = JSON.parse((await change("reset")).body)
    expect(reset).toEqual({
      isCounted: true,
      shadow: false,
      degraded: false,
      limit: 1,
      remaining: 1,
      resetAfterMs: 0,
      retryAfterMs: 0,
    })
    expect((await decide()).allowed).toBe(true)
  })
})

describe("the audit", () => {
  it("receives each change, and each that failed, with the request of the framework", async () => {
    const lines: unknown[] = []
    const audit = (change: DashboardChange, request: express.Request) =>
      void lines.push([request.get("x-user"), change])
    const mount = (page: Dashboard) => inExpress(express, page)
    const served = await serve({ token: TOKEN, audit: audit as never, mount, path: undefined })
    const { clients } = await served.find("192.0.2.7")
    const change = (more: object) =>
      served.post(
        "change",
        { service: "shop", rule: "per-client", id: clients[0].id, text: "", ...more },
        { "x-user": "ada", "x-sluice-token": TOKEN },
      )
    await change({ action: "blocked", for: "1 hour" })
    await change({ action: "unblocked" })
    await change({ action: "reset" })
    await change({ action: "blocked", for: "5" })
    await change({ action: "blocked", for: "1 century" })
    const client = { service: "shop", rule: "per-client", client: "192.0.2.7" }
    expect(lines).toEqual([
      ["ada", { action: "blocked", ...client, for: "1 hour" }],
      ["ada", { action: "unblocked", ...client }],
      ["ada", { action: "reset", ...client }],
      ["ada", { action: "blocked", ...client, for: "5", failure: expect.any(Error) }],
      ["ada", { action: "blocked", ...client, for: "1 century", failure: expect.any(InvalidOptionError) }],
    ])
  })

  it("does not receive what was refused before it was a change", async () => {
    const audit = vi.fn()
    const { change, post } = await serve({ token: TOKEN, audit })
    await change("blocked", { token: "another token" })
    await change("blocked", { key: "nobody" })
    await change("closed")
    await post("change", "{")
    expect(audit).not.toHaveBeenCalled()
  })

  it("is a line of the logger, or of the console if the logger has no info", async () => {
    const lines: unknown[] = []
    const logger = {
      ...QUIET,
      info: (fields: unknown, message: string) => void lines.push([message, fields]),
    }
    const inConsole = vi.spyOn(console, "info").mockImplementation((message, fields, err) => {
      lines.push([message, { ...JSON.parse(fields), ...(err !== undefined && { err }) }])
    })
    closing.push(() => inConsole.mockRestore())
    const fields = { action: "blocked", service: "shop", rule: "per-client", client: "192.0.2.7" }
    for (const each of [logger, { warn() {}, error() {} }]) {
      lines.length = 0
      const { change } = await serve({ token: TOKEN, logger: each })
      await change("blocked")
      await change("blocked", { for: "2" })
      expect(lines).toEqual([
        ["A client was blocked.", { ...fields, for: "1 hour" }],
        [
          "The call failed, so the client may not have been blocked. See err for what to do.",
          { ...fields, for: "2", err: expect.any(Error) },
        ],
      ])
    }
  })

  it("has no line break or control character of a client's key in the line of the console", async () => {
    const printed: unknown[] = []
    const inConsole = vi.spyOn(console, "info").mockImplementation((...parts) => void printed.push(parts))
    closing.push(() => inConsole.mockRestore())
    const rules: readonly Rule[] = [
      { name: "user", field: "header:x-user", limit: 9, window: "1 hour", onMissing: "shared" },
    ]
    const { change } = await serve({ token: TOKEN, rules, logger: { warn() {}, error() {} } })
    const key = "eve\u2028\u0085\u009b2J\x7f"
    expect((await change("blocked", { key })).status).toBe(200)
    const { status, body } = await change("blocked", { key, for: "1\n2" })
    expect([status, body]).toEqual([400, expect.stringMatching(/^"1\\n2" has no unit/)])
    const [, fields] = printed[0] as [string, string]
    expect(fields).toMatch(/^[ -~]+$/)
    expect(JSON.parse(fields).client).toBe(key)
  })

  it.each([
    ["throws", () => fail()],
    ["rejects", async () => fail()],
  ])("cannot make a change fail if it %s", async (_how, audit) => {
    const warn = vi.fn()
    const { change } = await serve({ token: TOKEN, audit, logger: { ...QUIET, warn } })
    for (let i = 0; i < 2; i++) expect((await change("blocked")).status).toBe(200)
    expect(warn).toHaveBeenCalledExactlyOnceWith(
      { code: "SLUICE_CALLBACK_FAILED", err: expect.any(Error) },
      expect.stringContaining("audit"),
    )
  })
})

function fail(): never {
  throw new Error("no disk")
}

describe("a change", () => {
  const operator = (() => "operator") as never

  it.each([
    ["blocked", { for: "10" }, 400, '"10" has no unit. Give one, such as "1 hour" or "15m".'],
    ["blocked", { for: "" }, 400, '"" has no unit. Give one, such as "1 hour" or "15m".'],
    ["blocked", { for: "1 houur" }, 400, /"1 houur" is not a duration/],
    ["blocked", { for: "367 days" }, 400, /"367 days" is too long.*366d/],
    [
      "blocked",
      { rule: "planned" },
      400,
      "This is a shadow rule. It never refuses, so it cannot block a client.",
    ],
    ["blocked", { key: "192.0.2.50" }, 400, /^The rule does not count this client/],
    ["reset", { key: "192.0.2.", rule: "per-client" }, 404, /The lists no longer contain this client/],
    ["granted", { units: "0" }, 400, '"0" is not a number of units. Give a whole number above 0.'],
    ["granted", { units: "-5" }, 400, /is not a number of units/],
    ["granted", {}, 400, /is not a number of units/],
    ["granted", { units: "5", rule: "per-client" }, 400, /^The rule counts by a window/],
    ["banned", {}, 400, /The body must be JSON/],
    ["toString", {}, 400, /The body must be JSON/],
  ])("%s with %o is refused with %i and the reason", async (action, more, status, reason) => {
    const rules: readonly Rule[] = [
      { ...(RULES[0] as Rule), allow: ["192.0.2.50"] },
      { name: "planned", field: "ip", limit: 1, window: "1 minute", shadow: true },
    ]
    const { change } = await serve({ authorize: operator, rules })
    const response = await change(action, more)
    expect([response.status, response.body]).toEqual([status, expect.stringMatching(reason)])
  })

  it("cannot block a client that a rule with a function as its limit never refuses, and says so", async () => {
    const rule: Rule = { name: "by-plan", field: "ip", limit: () => 5, window: "1 minute" }
    const rules: readonly Rule[] = [
      { ...rule, allow: ["192.0.2.50"] },
      { ...rule, name: "planned", shadow: true },
    ]
    const { change } = await serve({ authorize: operator, rules })
    const refused = (start: string) => ({ status: 400, body: expect.stringMatching(`^${start}`) })
    expect(await change("blocked", { key: "192.0.2.50" })).toMatchObject(
      refused("The rule does not count this client"),
    )
    expect(await change("blocked", { rule: "planned" })).toMatchObject(refused("This is a shadow rule"))
    expect(await change("blocked", { rule: "by-plan" })).toMatchObject({ status: 200 })
  })

  it("grants units under a rule with calendar periods, and shows them", async () => {
    const told: unknown[] = []
    const rule: Rule = { name: "monthly", field: "ip", limit: 10, per: "month" }
    const { change, find, limiter } = await serve({
      ...{ authorize: operator, rules: [rule, ...RULES], keys: "shown" },
      audit: (made) => void told.push(made),
    })
    const stateUnder = async (name: string) =>
      (await find("192.0.2.7")).clients.find((each: { rule: string }) => each.rule === name).state
    expect(await stateUnder("monthly")).toMatchObject({ limit: 10, granted: 0 })
    expect(await stateUnder("per-client")).not.toHaveProperty("granted")
    const changed = await change("granted", { rule: "monthly", units: "5" })
    expect(JSON.parse(changed.body)).toMatchObject({ limit: 15, granted: 5 })
    expect(await stateUnder("monthly")).toMatchObject({ limit: 15, granted: 5 })
    expect(
      (await limiter.peek({ remoteAddress: "192.0.2.7" }, { rules: ["monthly"] })).checks[0],
    ).toMatchObject({ granted: 5 })
    const made = { action: "granted", service: "shop", rule: "monthly", client: "192.0.2.7", units: 5 }
    expect(told).toEqual([made])
  })

  it("names the client as it is counted, also under a rule with a function as its limit", async () => {
    const rule: Rule = { name: "by-plan", field: "ip", limit: () => 5, window: "1 minute" }
    const told: unknown[] = []
    const { change } = await serve({
      authorize: operator,
      rules: [rule],
      audit: (made) => void told.push(made),
    })
    expect(await change("blocked", { rule: "by-plan", key: "2001:db8::7" })).toMatchObject({ status: 200 })
    expect(told).toMatchObject([{ action: "blocked", client: "2001:db8::/64" }])
  })

  it("is refused with 400 or 413 if the body is malformed", async () => {
    const { post, clock } = await serve({ authorize: operator })
    const whole = { action: "reset", service: "shop", rule: "per-client", id: "x", text: "x" }
    for (const name of Object.keys(whole)) {
      clock.advance(10_000)
      for (const value of [undefined, 7, null, {}, []])
        expect((await post("change", { ...whole, [name]: value })).status).toBe(400)
    }
    for (const body of ["", "[]", "null", "7", "{"]) expect((await post("change", body)).status).toBe(400)
    expect((await post("change", { ...whole, id: "7".repeat(4_096) })).status).toBe(413)
  })

  it("applies to the chosen client, although another one looks the same", async () => {
    const [one, other] = COLLIDING
    const { find, post, limiter } = await serve({
      authorize: operator,
      hashSecret: "a secret of all processes",
    })
    for (const remoteAddress of [one, one, other, other]) await limiter.decide({ remoteAddress })
    const [first] = (await find(one)).clients
    const [second] = (await find(other)).clients
    expect(first.key).toBe(second.key)
    expect((await find(first.key)).clients).toEqual([first, second])
    const { service, rule, id } = second
    await post("change", { action: "blocked", service, rule, id, text: first.key, for: "1 hour" })
    const refusals = [one, other].map(
      async (remoteAddress) => (await limiter.peek({ remoteAddress })).refusal,
    )
    expect(await Promise.all(refusals)).toEqual(["quota", "blocked"])
  })

  it("is refused with 503 and advice if the store does not respond", async () => {
    const client = new Redis({ port: 1, lazyConnect: true, retryStrategy: () => null })
    client.on("error", () => undefined)
    const limiter = createLimiter({
      ...RULES[0],
      service: "shop",
      store: redisStore({ client }),
      logger: QUIET,
    } as never)
    const failures: unknown[] = []
    const audit = ({ failure }: DashboardChange) => void failures.push(failure)
    const page = dashboard(limiter, { path: "/limits", authorize: operator, logger: QUIET, audit })
    const { port, close } = await node.mount(page)
    closing.push(() => limiter.close(), page.close, close)
    await limiter.decide({ remoteAddress: "192.0.2.7" } as never)
    const { find, change } = callsTo(port)
    expect((await find("192.0.2.7")).clients).toMatchObject([{ isShared: true, state: { degraded: true } }])
    for (const action of ["blocked", "unblocked", "reset"]) {
      const { status, body } = await change(action)
      const advice = `The client may not have been ${action}. Repeat the change when the store responds.`
      expect([status, body]).toEqual([503, expect.stringContaining(advice)])
    }
    expect(failures).toEqual(Array(3).fill(expect.any(StoreUnavailableError)))
  })

  it("under a rule whose limit is a function is made, although the state is unknown", async () => {
    const rules: readonly Rule[] = [{ name: "plan", field: "ip", limit: () => 1, window: "1 minute" }]
    const { find, change, decide } = await serve({ authorize: operator, rules })
    const { clients } = await find("192.0.2.7")
    expect(clients).toMatchObject([{ state: expect.stringContaining("function of the request") }])
    expect((await change("blocked")).status).toBe(200)
    expect((await decide()).refusal).toBe("blocked")
    const other = await change("blocked", { key: "192.0.2.8" })
    expect(other.status).toBe(200)
    expect((await decide("192.0.2.8")).refusal).toBe("blocked")
  })

  it("reaches the limiter that has the rule, if several have the same service", async () => {
    const [one, two] = ["one", "two"].map((name) =>
      createLimiter({ name, limit: 1, window: "1 hour", service: "shop" }),
    )
    const page = dashboard([one, two] as Limiter<never>[], {
      path: "/limits",
      authorize: operator,
      logger: QUIET,
    })
    const { port, close } = await node.mount(page)
    closing.push(page.close, close)
    for (const limiter of [one, two]) await limiter?.decide({ remoteAddress: "192.0.2.7" })
    for (const rule of ["one", "two"])
      expect((await callsTo(port).change("blocked", { rule })).status).toBe(200)
    for (const limiter of [one, two])
      expect((await limiter?.peek({ remoteAddress: "192.0.2.7" }))?.refusal).toBe("blocked")
  })
})

describe("a search", () => {
  it("shows the state of a client under each rule, and what the client has in the lists", async () => {
    const rules: readonly Rule[] = [
      ...RULES,
      { name: "hourly", field: "ip", limit: 10, window: "1 hour", algorithm: "fixed-window" },
      { name: "allowing", field: "ip", limit: 1, window: "1 hour", allow: ["192.0.2.7"] },
    ]
    const { find, clock, decide } = await serve({ rules, keys: "shown" })
    // The page knows the rules that have decided requests.
    await decide("192.0.2.8")
    const { atMs, clients, unread } = await find(" 192.0.2.7:4711 ")
    const found = { service: "shop", key: "192.0.2.7", id: "192.0.2.7", isShared: false }
    const counted = { isCounted: true, shadow: false, degraded: false }
    expect({ atMs, clients, unread }).toEqual({
      atMs: clock.now(),
      unread: 0,
      clients: [
        {
          ...{
            ...found,
            rule: "per-client",
            refused: expect.objectContaining({ key: "192.0.2.7", refusals: 1 }),
          },
          state: {
            ...counted,
            limit: 1,
            remaining: 0,
            resetAfterMs: 60_001,
            retryAfterMs: 60_001,
            refusal: "quota",
          },
        },
        {
          ...{ ...found, rule: "hourly" },
          state: { ...counted, limit: 10, remaining: 9, resetAfterMs: 3_600_000, retryAfterMs: 0 },
        },
        { ...found, rule: "allowing", state: { isCounted: false } },
      ],
    })
  })

  it("of an address shows each rule by address, and not the rules that count by other fields", async () => {
    const rules: readonly Rule[] = [
      { name: "by-ip", field: "ip", limit: 1, window: "1 minute" },
      { name: "by-both", field: ["ip", "header:x-user"], limit: 1, window: "1 minute", onMissing: "skip" },
      { name: "by-service", field: "service", limit: 100, window: "1 minute" },
      { name: "by-path", field: "ip", limit: 1, window: "1 minute", match: { path: "/login" } },
      { name: "by-user", field: "header:x-user", limit: 1, window: "1 minute", onMissing: "skip" },
    ]
    const { find, limiter, change } = await serve({
      rules,
      authorize: (() => "operator") as never,
      keys: "shown",
    })
    const request = {
      remoteAddress: "192.0.2.1",
      url: "/login",
      method: "GET",
      headers: { "x-user": "@eve" },
    }
    for (let i = 0; i < 2; i++) await limiter.decide(request)
    const found = async (key: string) =>
      (await find(key)).clients.map((each: { rule: string; key: string }) => [each.rule, each.key])
    expect(await found("2001:DB8::7")).toEqual([
      ["by-ip", "2001:db8::/64"],
      ["by-path", "2001:db8::/64"],
      ["by-user", "2001:DB8::7"],
    ])
    expect(await found("bob")).toEqual([["by-user", "bob"]])
    expect(await found("@bob")).toEqual([["by-user", "@bob"]])
    // The search finds the listed clients of rules with several fields.
    expect(await found("192.0.2.1")).toContainEqual(["by-both", "192.0.2.1, @eve"])
    expect(await found("")).toEqual([])
    expect((await change("blocked", { key: "2001:db8::9", rule: "by-path" })).status).toBe(200)
    const facts = { remoteAddress: "2001:db8::1", url: "/login", method: "GET" }
    expect(await limiter.peek(facts)).toMatchObject({ policy: "by-path", refusal: "blocked" })
  })

  it("says that a denied client may never come", async () => {
    const { find } = await serve({ rules: [{ ...(RULES[0] as Rule), deny: ["192.0.2.99"] }] })
    const { clients } = await find("192.0.2.99")
    expect(clients).toMatchObject([{ state: { refusal: "denied", retryAfterMs: null } }])
  })

  it("by a shown key finds the same client under all rules that list it", async () => {
    const byUser: Rule = {
      name: "user",
      field: "header:x-user",
      limit: 9,
      window: "1 hour",
      onMissing: "shared",
    }
    const rules = [...RULES, { name: "other", field: "ip", limit: 1, window: "1 hour" }, byUser]
    const { find } = await serve({ rules })
    // A user may have any name, but a hash is none.
    expect((await find("bob")).clients).toMatchObject([{ rule: "user" }])
    const { clients } = await find("192.0.2.7")
    const { key } = clients[0]
    expect(key).toMatch(/^hash:/)
    expect(await find(key)).toMatchObject({ clients: [{ rule: "per-client" }, { rule: "other" }] })
    expect((await find("hash:00000000")).clients).toEqual([])
  })

  it("reads at most 20 counters, and says how many it has not read", async () => {
    const rules = Array.from({ length: 25 }, (_, i) => ({
      name: `rule-${i}`,
      field: "ip",
      limit: 9,
      window: "1 hour",
    }))
    const { find, limiter } = await serve({ rules })
    const peek = vi.spyOn(limiter, "peek")
    const { clients, unread } = await find("192.0.2.50")
    expect([clients.length, unread, peek.mock.calls.length]).toEqual([20, 5, 20])
  })

  it("is refused with 429 after 20 in a second, and may then come twice a second", async () => {
    const { post, clock } = await serve()
    const statuses = async (times: number) => {
      const all = Array.from({ length: times }, () => post("find", { key: "x" }))
      return (await Promise.all(all)).filter(({ status }) => status === 200).length
    }
    expect(await statuses(25)).toBe(20)
    const { status, body, headers } = await post("find", { key: "x" })
    expect([status, body, headers["retry-after"]]).toEqual([
      ...[429, "There were too many searches and changes. Try again in 1 s.", "1"],
    ])
    clock.advance(1_000)
    expect(await statuses(5)).toBe(2)
  })

  it("says so if this process has no limiter of the service", async () => {
    const recorded = createLimiter({ name: "calls", limit: 1, window: "1 hour", service: "shop" })
    const { overview, overviewOfAll } = recordActivity(recorded)
    const source: DashboardSource = { activity: { overview, overviewOfAll }, limiterOf: () => undefined }
    const page = dashboard(source, { path: "/limits", authorize: () => "operator", logger: QUIET })
    const { port, close } = await node.mount(page)
    closing.push(page.close, close)
    for (let i = 0; i < 2; i++) await recorded.decide({ remoteAddress: "192.0.2.7" })
    const { find, change } = callsTo(port)
    const reason = "This process has no limiter of the service shop."
    await until("the refusal is shown", async () => (await find("192.0.2.7")).clients.length > 0)
    expect((await find("192.0.2.7")).clients).toMatchObject([{ rule: "calls", state: reason }])
    expect(await change("reset")).toMatchObject({ status: 404, body: reason })
  })

  it("by a shown key does not return the key if the rule now counts clients by another field", async () => {
    const rule = { name: "calls", limit: 1, window: "1 hour", service: "shop" }
    const [recorded, changed] = [createLimiter({ ...rule, field: "header:x-user" }), createLimiter(rule)]
    const { overview, overviewOfAll } = recordActivity(recorded)
    const source: DashboardSource = { activity: { overview, overviewOfAll }, limiterOf: () => changed }
    const page = dashboard(source, { path: "/limits", authorize: () => "operator", logger: QUIET })
    const { port, close } = await node.mount(page)
    closing.push(page.close, close)
    for (let i = 0; i < 2; i++) await recorded.decide({ headers: { "x-user": "ada" } })
    const { find, post } = callsTo(port)
    const [{ key, id }] = (await find("ada")).clients
    const state = "The rule has changed, and now counts clients by something else."
    expect(await find(key)).toMatchObject({ clients: [{ key, state }] })
    const change = { action: "reset", service: "shop", rule: "calls", id, text: key }
    expect(await post("change", change)).toMatchObject({ status: 404, body: state })
  })

  it("fails with 503 if the source of the limiters fails, and with 500 for any other error", async () => {
    const recorded = createLimiter({ name: "calls", limit: 1, window: "1 hour", service: "shop" })
    const { overview, overviewOfAll } = recordActivity(recorded)
    let thrown: Error = new Error("no rules at redis://:secret@localhost")
    const source: DashboardSource = {
      activity: { overview, overviewOfAll },
      limiterOf: () => Promise.reject(thrown),
    }
    const page = dashboard(source, {
      path: "/limits",
      authorize: () => "operator",
      keys: "shown",
      logger: QUIET,
    })
    const { port, close } = await node.mount(page)
    closing.push(page.close, close)
    await recorded.decide({ remoteAddress: "192.0.2.7" })
    await recorded.decide({ remoteAddress: "192.0.2.7" })
    const { find, change } = callsTo(port)
    await until("the refusal is shown", async () => (await find("192.0.2.7")).clients.length > 0)
    const { status, body } = await change("reset")
    expect([status, body]).toEqual([500, "no rules at redis://…@localhost"])
    thrown = new StoreUnavailableError("Redis is away.")
    expect(await change("reset")).toMatchObject({ status: 503, body: "Redis is away." })
  })
})
