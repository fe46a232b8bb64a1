import { readFileSync, writeFileSync } from "node:fs"
import { request as httpRequest, type IncomingHttpHeaders } from "node:http"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import type { Block } from "../docs/blocks.ts"
import { parseCurl } from "../docs/shell/curl.ts"
import { commandLines } from "../docs/shell/words.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { freePort } from "../servers/free-port.ts"
import { type HttpServer, startHttpServer } from "../servers/http-server.ts"
import { startProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { type RunningServer, startServer } from "../servers/web-server.ts"
import { findWebServer } from "../servers/web-server-binary.ts"
import { type Started, startService } from "./started.ts"

// Runs the configurations of docs/service/gateways.md, and the Lua file for HAProxy, in the real gateways. Only
// Traefik's requests are replayed.

const [checkOnPage, nginxConf, haproxyCfg, caddyfile, traefikYaml] = blocksTestedBy(
  "test/service/gateways.test.ts",
  "docs/service/gateways.md",
  5,
).map(({ text }: Block) => text) as [string, string, string, string, string]
const lua = readFileSync(new URL("../../deploy/haproxy/sluice.lua", import.meta.url), "utf8")
/** The short form of the Caddyfile, which the page only mentions. */
const shortCaddyfile = `
:8000 {
  forward_auth 127.0.0.1:8080 {
    uri /check/shop?
  }
  reverse_proxy 127.0.0.1:3000
}
`
const rules = `
service_id: shop
rules:
  - { name: per-ip, field: ip, rate: { requests_per_unit: 3, unit: minute } }
  - name: logins
    field: ip
    match: { methods: [POST], path: /login }
    rate: { requests_per_unit: 1, unit: minute }
`

/** The ports that replace the ports of the page. */
interface Ports {
  readonly listen: number
  readonly sluice: string
  readonly upstream: number
}

type Start = (ports: Omit<Ports, "listen">, edit?: (config: string) => string) => Promise<RunningServer>

/** Returns a configuration with these ports, and with timeouts that suit a busy machine. */
function placed(config: string, { listen, sluice, upstream }: Ports): string {
  return config
    .replaceAll(/\b[12]00ms/g, "20s")
    .replaceAll("127.0.0.1:8080", sluice)
    .replaceAll("127.0.0.1:3000", `127.0.0.1:${upstream}`)
    .replaceAll(/(?<=listen |bind |^):?8000\b/gm, `127.0.0.1:${listen}`)
}

const same = (config: string): string => config
/** Returns the configuration with a timeout that stays short. */
const hasty = (config: string): string => config.replaceAll("200ms", "500ms")

const startNginx: Start = async (ports, edit = same) =>
  startServer(await findWebServer("nginx"), (folder, listen) => {
    const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path temp/${name};`,
    )
    const conf = placed(edit(nginxConf), { ...ports, listen })
    writeFileSync(
      join(folder, "nginx.conf"),
      conf.replace("http {", `http { access_log off; ${temp.join(" ")}`),
    )
    const directives = "daemon off; master_process off; pid nginx.pid; error_log error.log;"
    return ["-p", folder, "-c", "nginx.conf", "-e", "error.log", "-g", directives]
  })

const startHaproxy: Start = async (ports, edit = same) => {
  const inner = await freePort()
  return startServer(await findWebServer("haproxy"), (folder, listen) => {
    writeFileSync(join(folder, "sluice.lua"), edit(lua).replace("timeout = 1000", "timeout = 60000"))
    const cfg = placed(edit(haproxyCfg), { ...ports, listen })
      .replaceAll("127.0.0.1:8079", `127.0.0.1:${inner}`)
      .replace("sluice.lua", join(folder, "sluice.lua"))
    writeFileSync(join(folder, "haproxy.cfg"), cfg)
    return ["-db", "-f", join(folder, "haproxy.cfg")]
  })
}

const caddyWith =
  (text: string): Start =>
  async (ports, edit = same) =>
    startServer(await findWebServer("caddy"), (folder, listen) => {
      // The address contains no host name, so Caddy requests no certificate.
      const site = placed(edit(text), { ...ports, listen }).replace("127.0.0.1:", "http://127.0.0.1:")
      const own = "{\n  admin off\n  auto_https off\n}\n"
      writeFileSync(join(folder, "Caddyfile"), own + site)
      return ["run", "--config", join(folder, "Caddyfile")]
    })

interface Seen {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The client's address. */
  readonly from?: string
}

function send(port: number, path: string, { method = "GET", headers, body, from }: Sent = {}): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const options = { port, path, method, headers, host: "127.0.0.1", localAddress: from ?? "127.0.0.2" }
    const sent = httpRequest({ ...options, agent: false } as object, (response) => {
      let text = ""
      response.on("data", (piece: Buffer) => {
        text += piece
      })
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
      )
    })
    sent.on("error", reject).end(body)
  })
}

let upstream: HttpServer
let started: Started
/** The requests that the app has received. */
const forwarded: string[] = []
let reasons: string[] = []

beforeAll(async () => {
  upstream = await startHttpServer((request, response) => {
    let body = ""
    request.on("data", (piece: Buffer) => {
      body += piece
    })
    request.on("end", () => {
      forwarded.push(`${request.method} ${request.url} ${body}`)
      response.statusCode = request.url === "/forbidden" ? 403 : 200
      response.setHeader("x-app", "yes").end("from the app")
    })
  })
})
afterAll(() => upstream.close())
afterEach(async () => {
  forwarded.length = 0
  reasons = []
  await started.stop()
  expect(started.faults).toEqual([])
})

async function startSluice(): Promise<string> {
  started = await startService(rules, {
    trustedProxies: ["127.0.0.1"],
    unknownServices: "refuse",
    onInvalidCheck: (reason) => void reasons.push(reason),
  })
  return started.http.replace("http://", "")
}

async function open(start: Start, edit?: (config: string) => string, sluice?: string): Promise<number> {
  const running = await start(
    { sluice: sluice ?? (await startSluice()), upstream: Number(new URL(upstream.url).port) },
    edit,
  )
  onTestFinished(() => running.remove())
  return running.port
}

/** The differences between this gateway and the other gateways. */
interface Differences {
  readonly isFromSluice: boolean
  readonly hasHeaders: boolean
  readonly gone: number
  readonly hangs: number
  /** The gateway's status after a check that failed with 400. */
  readonly invalid: number
  readonly misconfigured: (config: string) => string
}

const withoutUri = (config: string): string =>
  config
    .replace(/.*X-Original-URI.*\n/, "")
    .replace(/.*x-original-uri.*\n/, "")
    .replace(/.*X-Forwarded-Uri \{.*\n/, "")

describe.each<[string, Start, Differences]>([
  [
    "nginx",
    startNginx,
    { isFromSluice: false, hasHeaders: true, gone: 500, hangs: 500, invalid: 500, misconfigured: withoutUri },
  ],
  [
    "HAProxy",
    startHaproxy,
    { isFromSluice: true, hasHeaders: true, gone: 503, hangs: 504, invalid: 400, misconfigured: withoutUri },
  ],
  [
    "Caddy",
    caddyWith(caddyfile),
    { isFromSluice: true, hasHeaders: true, gone: 502, hangs: 504, invalid: 400, misconfigured: withoutUri },
  ],
  [
    "Caddy with forward_auth",
    caddyWith(shortCaddyfile),
    {
      ...{ isFromSluice: true, hasHeaders: false, gone: 502, hangs: 0, invalid: 400 },
      misconfigured: (config) => config.replace("uri /check/shop?", "uri /check?"),
    },
  ],
])(
  "%s as the page configures it",
  (_name, start, { isFromSluice, hasHeaders, gone, hangs, invalid, misconfigured }) => {
    it("forwards admitted requests, and responds to the other requests with 429 and Retry-After", async () => {
      const port = await open(start)
      const body = "x".repeat(100_000)
      const sent = {
        method: "PUT",
        body,
        headers: { "content-type": "text/plain", "content-encoding": "identity" },
      }
      const first = await send(port, "/a%2Fb?x=1&refused=no", sent)
      expect([first.status, first.body, first.headers["x-app"]]).toEqual([200, "from the app", "yes"])
      expect(forwarded).toEqual([`PUT /a%2Fb?x=1&refused=no ${body}`])
      if (hasHeaders) {
        expect(first.headers["ratelimit-policy"]).toBe('"per-ip";q=3;w=60')
        expect(first.headers.ratelimit).toMatch(/^"per-ip";r=2;t=\d+$/)
      }
      expect((await send(port, "/")).status).toBe(200)
      // The gateway passes on a response of the app itself.
      expect((await send(port, "/forbidden")).status).toBe(403)
      for (const method of ["GET", "HEAD", "POST"]) {
        const refused = await send(port, "/", { method })
        expect(refused.status).toBe(429)
        expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1)
        expect(refused.headers["content-type"]).toMatch(/^application\/problem\+json/)
        expect(refused.headers.ratelimit).toMatch(/^"per-ip";r=0;t=\d+$/)
        const problem = {
          title: "Quota Exceeded",
          status: 429,
          ...(isFromSluice && { "violated-policies": ["per-ip"] }),
        }
        if (method !== "HEAD") expect(JSON.parse(refused.body)).toMatchObject(problem)
      }
      expect(forwarded).toHaveLength(3)
      expect((await send(port, "/", { from: "127.0.0.3" })).status).toBe(200)
      expect(reasons).toEqual([])
    })

    it("matches rules by the client's method and path, including encoded characters", async () => {
      const port = await open(start)
      expect((await send(port, "/login", { method: "POST" })).status).toBe(200)
      expect((await send(port, "/l%6Fgin/?next=%2F", { method: "POST" })).status).toBe(429)
      expect((await send(port, "/login")).status).toBe(200)
    })

    it("lets no client hide its address, method or path in its own headers", async () => {
      const port = await open(start)
      expect((await send(port, "/login", { method: "POST" })).status).toBe(200)
      for (const headers of [
        { "x-forwarded-for": "192.0.2.1", forwarded: "for=192.0.2.1", "x-real-ip": "192.0.2.1" },
        { "x-original-uri": "/", "x-original-method": "GET" },
        { "x-original-url": "http://shop/" },
        { "x-forwarded-uri": "/", "x-forwarded-method": "GET" },
        { "sluice-status": "200", "sluice-token": "x" },
      ]) {
        const { status } = await send(port, "/login", { method: "POST", headers })
        // A check with a header that the gateway does not set may fail, but it never admits the request.
        expect(status).toBeGreaterThanOrEqual(400)
      }
      expect(forwarded).toHaveLength(1)
    })

    it("forwards nothing while the service is gone, hangs, or receives invalid checks", async () => {
      const address = await startSluice()
      const [host = "", port = ""] = address.split(":")
      const proxy = await startProxy({ host, port: Number(port) })
      onTestFinished(() => proxy.close())
      const gateway = await open(start, hasty, `${proxy.host}:${proxy.port}`)
      await until("the service is used", async () => (await send(gateway, "/")).status === 200)
      const before = forwarded.length
      if (hangs !== 0) {
        proxy.pause()
        expect((await send(gateway, "/")).status).toBe(hangs)
        proxy.resume()
      }
      proxy.refuse()
      proxy.cut()
      await until("it is gone", async () => (await send(gateway, "/")).status === gone)
      expect((await send(gateway, "/", { method: "POST", body: "x" })).status).toBe(gone)
      expect(forwarded).toHaveLength(before)
    })

    it("forwards nothing if its configuration does not describe the request", async () => {
      const port = await open(start, misconfigured)
      expect((await send(port, "/")).status).toBe(invalid)
      expect(forwarded).toEqual([])
      expect(reasons).toEqual([expect.stringMatching(/ is missing|has no service/)])
    })
  },
)

it.each<[string, Start, (config: string) => string]>([
  [
    "nginx",
    startNginx,
    (config) =>
      config
        .replace("proxy_pass_request_body", "error_page 502 504 = @admit;\n      proxy_pass_request_body")
        .replace("location @refused", "location @admit { internal; return 204; }\n    location @refused"),
  ],
  ["HAProxy", startHaproxy, (config) => config.replace("ANSWER = false", "ANSWER = true")],
])(
  "%s can be configured to admit requests while the service is unavailable, but not after an invalid check",
  async (_name, start, edit) => {
    const gone = await open(start, edit, `127.0.0.1:${await freePort()}`)
    expect((await send(gone, "/")).status).toBe(200)
    const port = await open(start, (config) => withoutUri(edit(config)))
    expect((await send(port, "/")).status).toBeGreaterThanOrEqual(400)
  },
)

it.each<[string, Start, (config: string, other: string) => string]>([
  [
    "nginx",
    startNginx,
    (config, other) => config.replace("    server 127.0.0.1:8080;", `    server ${other};\n$&`),
  ],
  [
    "HAProxy",
    startHaproxy,
    (config, other) => config.replace("  server one ", `  server two ${other} check\n$&`),
  ],
  [
    "Caddy",
    caddyWith(caddyfile),
    (config, other) =>
      config.replace(
        "reverse_proxy 127.0.0.1:8080 {",
        `reverse_proxy ${other} 127.0.0.1:8080 {\n    lb_try_duration 200ms`,
      ),
  ],
])("%s uses another instance when one instance is gone", async (_name, start, add) => {
  const other = `127.0.0.1:${await freePort()}`
  const port = await open(start, (config) => add(config, other))
  for (let i = 0; i < 3; i++) expect((await send(port, "/")).status).toBe(200)
})

it("the call of docs/service/gateways.md is admitted once, and then refused with the client's response", async () => {
  await startSluice()
  const { urls, init } = parseCurl(commandLines(checkOnPage)[0]?.words ?? [])
  const url = (urls[0] ?? "").replace("http://127.0.0.1:8080", started.http)
  const first = await fetch(url, init)
  expect([first.status, first.headers.get("ratelimit-policy")]).toEqual([
    204,
    '"per-ip";q=3;w=60, "logins";q=1;w=60',
  ])
  const second = await fetch(url, init)
  expect([second.status, await second.json()]).toMatchObject([429, { "violated-policies": ["logins"] }])
  const hidden = await fetch(`${url}?refused=403`, init)
  expect([hidden.status, hidden.headers.get("sluice-status")]).toEqual([403, "429"])
})

it("ShouldForwardRequest responds to a refusal with 200, so a gateway that reads only the status must not call it", async () => {
  await startSluice()
  const statuses: [number, boolean][] = []
  for (let i = 0; i < 4; i++) {
    const response = await fetch(`${started.http}/sluice.v1.RateLimiter/ShouldForwardRequest`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ service: "shop", request: { ip: "203.0.113.7" } }),
    })
    statuses.push([response.status, ((await response.json()) as { shouldForward: boolean }).shouldForward])
  }
  expect(statuses).toEqual([
    [200, true],
    [200, true],
    [200, true],
    [200, false],
  ])
})

describe("Traefik's requests", () => {
  /** Sends what Traefik sends for a request: https://doc.traefik.io/traefik/middlewares/http/forwardauth/ */
  const traefik = (method: string, uri: string, headers: Record<string, string> = {}): Promise<Seen> => {
    const { port } = new URL(started.http)
    const path = /address: http:\/\/127\.0\.0\.1:8080(\S+)/.exec(traefikYaml)?.[1] ?? ""
    return send(Number(port), path, {
      from: "127.0.0.1",
      headers: {
        "user-agent": "Go-http-client/1.1",
        "x-forwarded-for": "192.0.2.7",
        "x-forwarded-host": "shop.example",
        "x-forwarded-method": method,
        "x-forwarded-port": "80",
        "x-forwarded-proto": "http",
        "x-forwarded-uri": uri,
        "accept-encoding": "gzip",
        ...headers,
      },
    })
  }

  it("are admitted with 204, or refused with a response that Traefik passes on to the client", async () => {
    await startSluice()
    expect((await traefik("POST", "/login", { accept: "application/json" })).status).toBe(204)
    const refused = await traefik("POST", "/login?x=1", { accept: "application/json" })
    expect([refused.status, JSON.parse(refused.body).title]).toEqual([429, "Quota Exceeded"])
    expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1)
    expect((await traefik("GET", "/")).status).toBe(204)
  })

  it("are refused if a client adds another description, which the listed headers prevent", async () => {
    await startSluice()
    expect(traefikYaml).toContain("authRequestHeaders: [Accept, Cookie, X-Api-Key]")
    const forged = { "x-original-method": "GET", "x-original-uri": "/" }
    expect((await traefik("POST", "/login", forged)).status).toBe(400)
  })
})
