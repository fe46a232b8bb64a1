import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { connect as connectHttp2, createServer as createHttp2Server } from "node:http2"
import { type AddressInfo, connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Writable } from "node:stream"
import bodyParser from "@koa/bodyparser"
import { ExpressAdapter } from "@nestjs/platform-express"
import { FastifyAdapter } from "@nestjs/platform-fastify"
import { createLimiter, type Limiter, type RequestFacts } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import {
  type Activity,
  type Dashboard,
  type DashboardOptions,
  type DashboardSource,
  dashboard,
  mergeActivity,
  recordActivity,
} from "@sluice/dashboard"
import { rateLimit as expressLimit } from "@sluice/express"
import { rateLimit as fastifyLimit } from "@sluice/fastify"
import { rateLimit as koaLimit } from "@sluice/koa"
import { RateLimitModule } from "@sluice/nestjs"
import compression from "compression"
import express from "express"
import fastify from "fastify"
import type { Context } from "koa"
import { afterEach, describe, expect, it } from "vitest"
import {
  FETCH,
  FRAMEWORKS,
  type Framework,
  inExpress,
  inKoa,
  inNest,
  type Mounted,
  openEvents,
  send,
} from "./dashboard-servers.ts"

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const WARN = { warn() {}, error() {} }

/** Creates a limiter on a clock that stands still. A client is refused at its second request. */
function limited(
  rules: readonly object[] = [{ name: "per-client", field: "ip", limit: 1, window: "1 minute" }],
) {
  const clock = manualClock()
  const limiter = createLimiter<RequestFacts>({ rules: rules as never, clock, service: "shop" })
  closing.push(() => limiter.close())
  const decide = async (remoteAddress: string, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) await limiter.decide({ remoteAddress })
  }
  return { limiter, clock, decide }
}

function pageOf<Request>(limiter: Limiter<RequestFacts>, options: DashboardOptions<Request> = {}): Dashboard {
  const page = dashboard(limiter, { logger: WARN, ...options })
  closing.push(page.close)
  return page
}

async function mounted(framework: Framework, page: Dashboard): Promise<Mounted> {
  const server = await framework.mount(page)
  closing.push(server.close)
  return server
}

const node = FRAMEWORKS[0] as Framework
const all = [...FRAMEWORKS, FETCH]

/** Mounts the dashboard of a new limiter in Node's own server. */
async function inNode(options: DashboardOptions = {}, rules?: readonly object[]) {
  const parts = limited(rules)
  const { port } = await mounted(
    node,
    pageOf(parts.limiter, { clock: parts.clock, path: "/limits", ...options }),
  )
  return { ...parts, port, get: (path: string, call = {}) => send(port, `/limits${path}`, call) }
}

describe.each(all)("the dashboard in $name", (framework) => {
  const open = async () => {
    const { limiter, clock, decide } = limited()
    const { path } = framework
    const page = pageOf(limiter, { clock, authorize: () => true, ...(path !== undefined && { path }) })
    const { port } = await mounted(framework, page)
    return { decide, port, page, get: (path: string, call = {}) => send(port, path, call) }
  }

  it("serves its files and data below the mount, and nothing else", async () => {
    const { get, decide } = await open()
    await decide("192.0.2.7", 3)
    const page = await get("/limits/")
    expect(page.body).toContain('<script src="page.js" defer></script>')
    const types = { "": "text/html", "page.js": "text/javascript", "page.css": "text/css" }
    for (const [name, type] of Object.entries(types)) {
      const { status, headers, body } = await get(`/limits/${name}?x=1`)
      expect([status, headers["content-type"]]).toEqual([200, `${type}; charset=utf-8`])
      expect(Number(headers["content-length"] ?? body.length)).toBe(Buffer.byteLength(body))
    }
    const overview = JSON.parse((await get("/limits/overview.json")).body)
    expect(overview.services[0]).toMatchObject({
      service: "shop",
      rules: [{ rule: "per-client", seconds: { admitted: [1], refused: [2] }, refused: [{ refusals: 2 }] }],
      refusals: [{ rule: "per-client" }, { rule: "per-client" }],
    })
    expect((await get("/other")).body).toBe("other")
    expect((await get("/limitsx")).body).toBe("other")
    for (const path of ["nothing", "page.js/", "page/", "x/page.js", "__proto__"])
      expect((await get(`/limits/${path}`)).status).toBe(404)
  })

  it("redirects to the page relatively if the slash is missing", async () => {
    const { status, headers } = await (await open()).get("/limits?from=mail")
    expect([status, headers.location]).toEqual([302, "./limits/"])
  })

  it("answers HEAD like GET without a body, and other methods with 405", async () => {
    const { get } = await open()
    for (const path of ["/", "/page.js", "/overview.json"]) {
      const [head, full] = [await get(`/limits${path}`, { method: "HEAD" }), await get(`/limits${path}`)]
      expect([head.status, head.body, head.headers.etag]).toEqual([200, "", full.headers.etag])
      for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
        const { status, headers } = await get(`/limits${path}`, { method })
        expect([status, headers.allow]).toEqual([405, "GET, HEAD"])
      }
    }
    const events = await get("/limits/events", { method: "HEAD" })
    expect([events.status, events.headers["content-type"]]).toEqual([200, "text/event-stream"])
    const find = await get("/limits/find")
    expect([find.status, find.headers.allow]).toEqual([405, "POST"])
  })

  it("sends the security headers with every response", async () => {
    const { get } = await open()
    const calls = [
      ["/"],
      [""],
      ["/page.js"],
      ["/page.css"],
      ["/overview.json"],
      ["/none"],
      ["/", "PUT"],
      ["/find", "POST"],
    ]
    for (const [path, method = "GET"] of calls) {
      const { headers } = await get(`/limits${path}`, { method })
      expect(headers).toMatchObject({
        "content-security-policy": expect.stringMatching(
          /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'/,
        ),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cache-control":
          path === "/page.js" || path === "/page.css" || (path === "/" && method === "GET")
            ? "no-cache"
            : "no-store",
      })
      expect(Object.keys(headers).filter((name) => name.startsWith("access-control"))).toEqual([])
    }
  })

  it("finds a client by a body that only its own page can send", async () => {
    const { get, decide } = await open()
    await decide("192.0.2.7", 3)
    const call = (body: string, headers = {}) =>
      get("/limits/find", {
        method: "POST",
        headers: { "content-type": "application/json", "x-sluice-dashboard": "find", ...headers },
        body,
      })
    const { body } = await call('{"key":" 192.0.2.7:4711 "}')
    const listed = JSON.parse((await get("/limits/overview.json")).body).services[0].rules[0].refused[0]
    const ofRule = { service: "shop", rule: "per-client" }
    expect(JSON.parse(body).clients).toMatchObject([{ ...ofRule, key: listed.key, refused: listed }])
    expect(JSON.parse((await call('{"key":"ada"}')).body).clients).toEqual([])
    expect((await get("/limits/find", { method: "POST", body: '{"key":"192.0.2.7"}' })).status).toBe(403)
    for (const bad of ["", "{", "null", '{"key":7}', "[]"]) expect((await call(bad)).status).toBe(400)
    expect((await call(`{"key":"${"7".repeat(4_100)}"}`)).status).toBe(413)
  })

  it("sends events, and ends them when it is closed", async () => {
    const { port, page, decide } = await open()
    await decide("192.0.2.7", 2)
    const events = await openEvents(port)
    expect(events.response.headers["content-type"]).toBe("text/event-stream")
    expect(await events.next()).toMatch(/^retry: 2000\ndata: {"atMs":.*"refused":\[1\].*\n\n$/)
    page.close()
    expect(await events.next()).toBeUndefined()
    // The browser connects again, for which a closing server would wait, too.
    expect((await send(port, "/limits/events")).status).toBe(503)
  })

  it("refuses each visitor that authorize does not allow", async () => {
    const { path } = framework
    const answers: (() => unknown)[] = [
      () => false,
      () => Promise.resolve(false),
      () => Promise.reject(new Error("no session")),
      () => {
        throw new Error("no session")
      },
      () => "yes",
      () => true,
      () => Promise.resolve(true),
    ]
    const statuses = []
    for (const authorize of answers) {
      const page = pageOf(limited().limiter, {
        authorize: authorize as () => boolean,
        ...(path !== undefined && { path }),
      })
      const { port } = await mounted(framework, page)
      const paths = ["/", "/page.js", "/overview.json", "/events", "/none", ""]
      const found = new Set<number | undefined>()
      for (const each of paths) found.add((await send(port, `/limits${each}`, { method: "HEAD" })).status)
      statuses.push([...found])
    }
    expect(statuses).toEqual([...Array(5).fill([403]), ...Array(2).fill([200, 404, 302])])
  })
})

describe("without authorize, the dashboard", () => {
  it.each(FRAMEWORKS)("in $name is open only to this machine, without a proxy", async (framework) => {
    const { path } = framework
    const warnings: string[] = []
    const logger = { warn: (_fields: unknown, message: string) => warnings.push(message), error() {} }
    const page = pageOf(limited().limiter, { logger, ...(path !== undefined && { path }) })
    const { port } = await mounted(framework, page)
    const status = async (headers: Record<string, string>) =>
      (await send(port, "/limits/", { headers })).status
    for (const host of [
      "localhost",
      `localhost:${port}`,
      "127.0.0.1",
      `127.0.0.1:${port}`,
      "[::1]:80",
      "LOCALHOST",
    ])
      expect(await status({ host })).toBe(200)
    expect(warnings).toEqual([])
    for (const host of [
      "example.com",
      "localhost.example.com",
      "127.0.0.1.example.com",
      "192.0.2.7",
      "0.0.0.0",
      "localhost:80@x",
    ])
      expect(await status({ host })).toBe(403)
    const proxies = [
      "Forwarded",
      "X-Forwarded-For",
      "X-Forwarded-Host",
      "X-Forwarded-Anything",
      "X-Real-IP",
      "Via",
    ]
    for (const name of proxies) expect(await status({ [name]: "127.0.0.1" })).toBe(403)
    expect(warnings).toEqual([
      expect.stringMatching(/^The dashboard refused a request.* set its option authorize/),
    ])
  })

  it.each([
    ["127.0.0.1", true],
    ["127.255.0.9", true],
    ["::1", true],
    ["::ffff:127.0.0.1", true],
    ["192.0.2.7", false],
    ["::ffff:192.0.2.7", false],
    ["fe80::1", false],
    ["127.0.0.1.example.com", false],
    [undefined, false],
  ])("is open to the address %s: %s", async (remoteAddress, isOpen) => {
    const page = pageOf(limited().limiter)
    const server = createServer((call, response) => {
      Object.defineProperty(call.socket, "remoteAddress", { value: remoteAddress })
      page(call, response)
    })
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    closing.push(() => server.close())
    const { status } = await send((server.address() as AddressInfo).port, "/")
    expect(status).toBe(isOpen ? 200 : 403)
  })

  // What nginx sends by default to the servers behind it: before its version 1.29.7, since then, and by a common setting.
  it.each([
    "HTTP/1.0\r\nConnection: close",
    "HTTP/1.0\r\nConnection: keep-alive",
    "HTTP/1.1",
    "HTTP/1.1\r\nConnection: upgrade",
  ])("is closed to the request of a proxy with %j", async (sent) => {
    const { port } = await inNode()
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(`GET /limits/ ${sent}\r\nHost: localhost\r\n\r\n`),
    )
    const [first] = await new Promise<string[]>((done) =>
      socket.once("data", (data) => done(String(data).split("\r\n"))),
    )
    socket.destroy()
    expect(first).toBe("HTTP/1.1 403 Forbidden")
  })

  it("is closed in a fetch server, which does not know the address of a client", async () => {
    const { port } = await mounted(FETCH, pageOf(limited().limiter, { path: "/limits" }))
    expect((await send(port, "/limits/")).status).toBe(403)
  })
})

it("the dashboard does not respond to pages of other origins, although middleware may allow all origins", async () => {
  const { get } = await inNode()
  const status = async (site: string, mode: string) =>
    (await get("/overview.json", { headers: { "sec-fetch-site": site, "sec-fetch-mode": mode } })).status
  for (const site of ["cross-site", "same-site"]) {
    expect(await status(site, "cors")).toBe(403)
    expect(await status(site, "no-cors")).toBe(403)
    // A link.
    expect(await status(site, "navigate")).toBe(200)
  }
  expect(await status("same-origin", "cors")).toBe(200)
  expect(await status("none", "navigate")).toBe(200)
})

describe("authorize", () => {
  it("receives the request of the framework", async () => {
    const seen: unknown[] = []
    const see = (value: unknown) => seen.push(value) > 0
    const inExpressApp = await inExpress(
      express,
      pageOf(limited().limiter, { authorize: (request: express.Request) => see(request.get("x-user")) }),
    )
    const inKoaApp = await inKoa(
      pageOf(limited().limiter, { path: "/limits", authorize: (ctx: Context) => see(ctx.state.user) }),
      (ctx, next) => {
        ctx.state.user = "of the state"
        return next()
      },
    )
    const app = fastify()
    app.decorateRequest("user" as never, "of the decorator" as never)
    app.register(
      pageOf(limited().limiter, { authorize: (request: { user: string }) => see(request.user) }).fastify,
      { prefix: "/limits" },
    )
    await app.listen({ port: 0, host: "127.0.0.1" })
    closing.push(inExpressApp.close, inKoaApp.close, () => app.close())
    const { port } = app.server.address() as AddressInfo
    for (const each of [inExpressApp.port, inKoaApp.port, port])
      expect((await send(each, "/limits/", { headers: { "x-user": "of the header" } })).status).toBe(200)
    expect(seen).toEqual(["of the header", "of the state", "of the decorator"])
  })

  it("also sees a session that has ended, because an open page sends a new request every minute", async () => {
    const { limiter, clock } = limited()
    const sessions = new Set(["of the admin"])
    type WithUser = express.Request & { isAdmin?: boolean }
    const page = pageOf(limiter, { clock, authorize: ({ isAdmin = false }: WithUser) => isAdmin })
    const { port, close } = await inExpress(express, page, (app) =>
      app.use((request: WithUser, _response, next) => {
        request.isAdmin = sessions.has(String(request.headers["x-session"]))
        next()
      }),
    )
    closing.push(close)
    const headers = { "x-session": "of the admin" }
    const events = await openEvents(port, headers)
    await events.next()
    sessions.clear()
    for (let updates = 0; updates < 30; updates++) {
      clock.advance(2_000)
      expect(await events.next()).toContain("data: ")
    }
    expect(await events.next()).toBeUndefined()
    expect((await send(port, "/limits/events", { headers })).status).toBe(403)
  })
})

describe("viewers", () => {
  it("are at most 50, receive the same string, and free their places when they leave", async () => {
    const { port, clock, decide } = await inNode()
    const viewers = await Promise.all(Array.from({ length: 50 }, () => openEvents(port)))
    const first = await Promise.all(viewers.map((viewer) => viewer.next()))
    expect(new Set(first).size).toBe(1)
    const { status, headers } = await send(port, "/limits/events")
    expect([status, headers["retry-after"]]).toEqual([503, "30"])
    await decide("192.0.2.7", 2)
    clock.advance(2_000)
    const second = await Promise.all(viewers.map((viewer) => viewer.next()))
    expect(new Set(second).size).toBe(1)
    expect(second[0]).not.toBe(first[0])
    viewers[7]?.leave()
    await expect.poll(async () => (await send(port, "/limits/events", { method: "HEAD" })).status).toBe(200)
    await expect
      .poll(async () => {
        const next = await openEvents(port)
        closing.push(next.leave)
        return next.response.statusCode
      })
      .toBe(200)
    for (const viewer of viewers) viewer.leave()
  })

  it("do not make the overview larger or read it more often, however many they are", async () => {
    const { port, clock, limiter, decide } = await inNode()
    let reads = 0
    const status = limiter.status
    Object.defineProperty(limiter, "status", {
      get: () => {
        reads++
        return status
      },
    })
    for (let client = 0; client < 100; client++) await decide(`192.0.2.${client}`, 2)
    clock.advance(2_000)
    const viewers = await Promise.all(Array.from({ length: 50 }, () => openEvents(port)))
    const events = await Promise.all(viewers.map((viewer) => viewer.next()))
    expect(reads).toBe(1)
    const overview = JSON.parse(String(events[0]).replace(/^retry.*\ndata: /, ""))
    expect(overview.services[0].rules[0].refused).toHaveLength(50)
    for (const viewer of viewers) viewer.leave()
  })

  it.each(["HTTP/1.1", "HTTP/2"])("of %s that do not read do not fill the memory", async (version) => {
    const { limiter, clock } = limited()
    const page = pageOf(limiter, { clock, path: "/limits", authorize: () => true })
    for (let i = 0; i < 500; i++) await limiter.decide({ remoteAddress: `192.0.2.${i % 250}` })
    const streams: Writable[] = []
    const respond = (call: IncomingMessage, response: ServerResponse & { readonly stream?: Writable }) => {
      streams.push(response.stream ?? response)
      page(call, response)
    }
    const server = version === "HTTP/2" ? createHttp2Server(respond as never) : createServer(respond)
    // The system holds less data for a socket with a path than for one with a port.
    const folder = mkdtempSync(join(tmpdir(), "sluice-dashboard-"))
    const path = join(folder, "socket")
    await new Promise<void>((done) => server.listen(path, done))
    closing.push(
      () => rmSync(folder, { recursive: true }),
      () => server.close(),
    )
    const slow = connect(path)
    closing.push(() => slow.destroy())
    if (version === "HTTP/1.1") {
      slow.pause().write("GET /limits/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    } else {
      const session = connectHttp2("http://localhost", { createConnection: () => slow })
      // Nobody reads the response, so the server may send no more than the window of HTTP/2 allows.
      session.request({ ":path": "/limits/events" })
    }
    await expect.poll(() => streams.length).toBe(1)
    const stuck = streams[0] as Writable
    let most = 0
    let updates = 0
    while (!stuck.destroyed && updates < 1_000) {
      clock.advance(2_000)
      await new Promise((done) => setImmediate(done))
      most = Math.max(most, stuck.writableLength)
      updates++
    }
    expect(stuck.destroyed).toBe(true)
    expect(updates).toBe(30)
    const overview = await page.fetch(new Request("http://localhost/limits/overview.json"))
    expect(most).toBeLessThan(2 * (await overview.text()).length)
  })

  it("receive updates although a middleware compresses responses", async () => {
    const { limiter, clock } = limited()
    const server = await inExpress(
      express,
      pageOf(limiter, { clock }),
      (app) => void app.use(compression({ threshold: 0 })),
    )
    closing.push(server.close)
    const events = await openEvents(server.port, { "accept-encoding": "gzip" })
    expect(await events.next()).toContain("data: ")
    clock.advance(2_000)
    expect(await events.next()).toContain("data: ")
    events.leave()
  })

  it("do not keep an app of Fastify from closing", async () => {
    const framework = FRAMEWORKS.find(({ name }) => name === "Fastify") as Framework
    const server = await framework.mount(pageOf(limited().limiter))
    const events = await openEvents(server.port)
    await events.next()
    await server.close()
    expect(await events.next()).toBeUndefined()
  })
})

describe("keys of clients", () => {
  const rules = [
    { name: "one", field: "ip", limit: 1, window: "1 minute" },
    { name: "two", field: ["ip", "header:x-user"], limit: 1, window: "1 minute" },
    { name: "all", field: "service", limit: 1, window: "1 minute" },
  ]
  const ask = async (options: DashboardOptions) => {
    const { get, limiter } = await inNode(options, rules)
    for (let i = 0; i < 40; i++)
      await limiter.decide({ remoteAddress: "2001:db8:1:2::7", headers: { "x-user": "@alice" } })
    const { body } = await get("/overview.json")
    const find = async (key: string) => {
      const headers = { "content-type": "application/json", "x-sluice-dashboard": "1" }
      const { body } = await get("/find", { method: "POST", headers, body: JSON.stringify({ key }) })
      return JSON.parse(body).clients as { rule: string; key: string; refused?: object }[]
    }
    return { body, find }
  }

  it("are hashed by default with a secret of the process, also those of several fields", async () => {
    const [one, other] = [await ask({}), await ask({ keys: "hashed" })]
    for (const { body } of [one, other]) expect(body).not.toMatch(/2001:db8|alice/)
    const keys = (text: string): readonly string[] => text.match(/hash:[0-9a-f]{8}/g) ?? []
    expect(keys(one.body).length).toBeGreaterThan(0)
    expect(keys(one.body).filter((key) => keys(other.body).includes(key))).toEqual([])
  })

  it("have the same hashes in all processes with the same secret", async () => {
    const hashSecret = "a secret of all processes"
    const [one, other] = [await ask({ hashSecret }), await ask({ hashSecret })]
    const listed = ({ body }: { readonly body: string }) =>
      JSON.parse(body).services[0].rules[0].refused[0].key
    expect(listed(one)).toMatch(/^hash:/)
    expect(listed(one)).toBe(listed(other))
  })

  it("are shown as their values with keys: shown", async () => {
    const { body } = await ask({ keys: "shown" })
    expect(body).toContain('"key":"2001:db8:1:2::/64"')
  })

  it("are not hashed if the key is that of all clients together", async () => {
    const { body } = await ask({})
    const { rules } = JSON.parse(body).services[0]
    expect(rules[2].refused[0].key).toBe("")
  })

  it("are found by any spelling of an address and by each value of several fields", async () => {
    const { find } = await ask({})
    expect((await find("2001:0db8:0001:0002::9")).map(({ rule }) => rule)).toEqual(["one", "two"])
    expect((await find("@alice")).map(({ rule }) => rule)).toEqual(["two"])
    // The rule "one" has a single field, but "alice" is not an address.
    expect(await find("alice")).toEqual([])
    expect((await find("")).map(({ rule }) => rule)).toEqual(["all"])
  })
})

describe("the files of the page", () => {
  it("are compressed for clients that accept it, and not sent again if they have not changed", async () => {
    const { port, get } = await inNode()
    for (const path of ["/", "/page.js", "/page.css"]) {
      const full = await get(path)
      const { etag } = full.headers
      expect(etag).toMatch(/^W\/"[\w-]{22}"$/)
      const again = await get(path, { headers: { "if-none-match": String(etag) } })
      expect([again.status, again.body]).toEqual([304, ""])
      const response = await fetch(`http://127.0.0.1:${port}/limits${path}`)
      expect(response.headers.get("content-encoding")).toBe("gzip")
      expect(await response.text()).toBe(full.body)
    }
  })
})

describe("requests for the page", () => {
  it("are not counted if the dashboard is mounted before the limiter", async () => {
    const options = { limit: 1, window: "1 minute" } as const
    const inApp = expressLimit(options)
    const server = await inExpress(express, pageOf(inApp.limiter as never))
    const limitedKoa = koaLimit(options)
    const koa = await inKoa(pageOf(limitedKoa.limiter as never, { path: "/limits" }))
    const app = fastify()
    await app.register(fastifyLimit, options)
    // A plugin of Fastify applies to all routes, so the routes of the dashboard are excluded in any order.
    app.register(pageOf(app.sluice.limiter as never).fastify, { prefix: "/limits" })
    await app.listen({ port: 0, host: "127.0.0.1" })
    const { limiter } = limited()
    const module = RateLimitModule.forRoot({ limiter: limiter as Limiter<never> })
    const nest = await Promise.all(
      [new ExpressAdapter(), new FastifyAdapter()].map((adapter) =>
        inNest(pageOf(limiter), adapter, [module]),
      ),
    )
    closing.push(server.close, koa.close, () => app.close(), ...nest.map(({ close }) => close))
    const { port } = app.server.address() as AddressInfo
    for (const each of [server.port, koa.port, port, ...nest.map((app) => app.port)]) {
      const statuses = []
      for (let i = 0; i < 3; i++) statuses.push((await send(each, "/limits/overview.json")).status)
      expect(statuses).toEqual([200, 200, 200])
    }
  })

  it("may have bodies that a parser of the app has read", async () => {
    const { limiter, decide } = limited()
    const server = await inExpress(express, pageOf(limiter), (app) => void app.use(express.json()))
    const koa = await inKoa(pageOf(limiter, { path: "/limits" }), bodyParser())
    closing.push(server.close, koa.close)
    await decide("192.0.2.7", 2)
    const headers = { "content-type": "application/json", "x-sluice-dashboard": "1" }
    for (const { port } of [server, koa]) {
      const { body } = await send(port, "/limits/find", {
        method: "POST",
        headers,
        body: '{"key":"192.0.2.7"}',
      })
      expect(JSON.parse(body).clients).toHaveLength(1)
    }
  })
})

describe("a source", () => {
  it("shows limiters that come and go", async () => {
    let limiters: readonly Limiter<RequestFacts>[] = []
    const activities = new Map<Limiter<RequestFacts>, Activity>()
    const overview = () =>
      mergeActivity(
        [...activities.values()].flatMap((each) => each.snapshots()),
        0,
      )
    const source: DashboardSource = {
      activity: { overview, overviewOfAll: async () => overview() },
      limiterOf: (service): Limiter<RequestFacts> | undefined =>
        limiters.find(({ status }) => status.service === service),
    }
    const clock = manualClock()
    const page = dashboard(source, { clock, path: "/limits" })
    const { port } = await mounted(node, page)
    const services = async () => {
      clock.advance(2_000)
      await send(port, "/limits/overview.json")
      return JSON.parse((await send(port, "/limits/overview.json")).body).services.map(
        (each: { service: string }) => each.service,
      )
    }
    expect(await services()).toEqual([])
    const { limiter, decide } = limited()
    limiters = [limiter]
    const activity = recordActivity(limiter)
    activities.set(limiter, activity)
    expect(await services()).toEqual(["shop"])
    page.close()
    await decide("192.0.2.7", 2)
    // The source's own recording goes on.
    expect(activity.overview().services[0]?.rules).toHaveLength(1)
    activities.clear()
    expect(await services()).toEqual([])
  })

  it.each([
    [{ activity: {}, limiterOf: (): undefined => undefined }, {}, /limiters: .* is not a source.*limiterOf/],
    [{ activity: { overview() {}, overviewOfAll() {} } }, {}, /limiters: .* is not a source/],
    [
      { activity: { overview() {}, overviewOfAll() {} }, limiterOf() {} },
      { shared: { exchange() {} } },
      /shared: has no effect on a source/,
    ],
  ])("is rejected if it is %o with the options %o", (source, options, message) => {
    expect(() => dashboard(source as never, options as never)).toThrow(message)
  })
})

describe("dashboard()", () => {
  it.each([
    [{ authorise: () => true }, /authorise: is not an option of dashboard\(\); did you mean "authorize"/],
    [{ authorize: true }, /authorize: true is not a function/],
    [{ keys: "plain" }, /keys: "plain" is not a way to show keys.*"hashed" or "shown"/],
    [{ hashSecret: "short" }, /hashSecret: is not a secret.*at least 16 characters/],
    [{ path: "/limits/" }, /path: "\/limits\/" is not a path/],
    [{ path: "limits" }, /path: "limits" is not a path/],
    [{ logger: console.log }, /logger/],
  ])("rejects the options %o", (options, message) => {
    expect(() => dashboard(limited().limiter, options as never)).toThrow(message)
  })

  it("rejects a value that is not a limiter", () => {
    expect(() => dashboard({} as never)).toThrow(/not a limiter or a list of limiters/)
  })
})
