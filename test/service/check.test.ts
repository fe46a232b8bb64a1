import { request as httpRequest, type IncomingHttpHeaders } from "node:http"
import { connect } from "node:net"
import { tokens } from "@sluice/service"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { type Started, startService } from "./started.ts"

// Tests /check/<service>, the call for gateways that read only the status and the headers of a response.

const RULES = `
service_id: shop
rules:
  - { name: per-ip, field: ip, limit: 2, window: 1 day }
---
service_id: 7
rules:
  - { name: reads, field: ip, limit: 2, window: 1 day, match: { methods: [GET] } }
  - { name: logins, field: ip, limit: 1, window: 1 day, match: { methods: [POST], path: /login } }
---
service_id: texts
rules:
  - { name: per-key, field: "header:x-api-key", on_missing: deny, limit: 1, window: 1 day, rejection: { status: 420, body: "slower, please" } }
---
service_id: fields
rules:
  - { name: fields, field: ["query:user", "cookie:session", "header:host"], on_missing: deny, limit: 1, window: 1 day }
---
service_id: held
rules: { name: held, field: ip, limit: 1, window: 1 day, throttle: { kind: queue, max_wait_ms: 86400000 } }
`

interface Checked {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | string[]>> | undefined
  readonly body?: string
  /** The address from which the gateway connects. */
  readonly from?: string
  readonly signal?: AbortSignal
}

let started: Started

beforeEach(() => start())
afterEach(async () => {
  await started.stop()
  expect(started.faults).toEqual([])
})

type Parts = Parameters<typeof startService>[1]

async function start(parts: Parts = {}): Promise<void> {
  started = await startService(RULES, { trustedProxies: ["127.0.0.1"], ...parts })
}

/** Restarts the service with other options. */
async function restart(parts: Parts): Promise<void> {
  await started.stop()
  await start(parts)
}

/** Sends a request as a gateway does. Resolves with the response. */
function check(path: string, { method = "GET", headers, body, from, signal }: Sent = {}): Promise<Checked> {
  return new Promise((resolve, reject) => {
    const options = { method, headers, localAddress: from ?? "127.0.0.1", agent: false, signal }
    const sent = httpRequest(`${started.http}${path}`, options as object, (response) => {
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

const xff = (address: string) => ({ "x-forwarded-for": address })
/** Returns the headers with which nginx describes a request. */
const original = (method: string, uri: string, address = "192.0.2.7") => ({
  "x-original-method": method,
  "x-original-uri": uri,
  ...xff(address),
})
/** Returns the headers with which Caddy and Traefik describe a request. */
const forwarded = (method: string, uri: string, address = "192.0.2.7") => ({
  "x-forwarded-method": method,
  "x-forwarded-uri": uri,
  ...xff(address),
})

describe("a check", () => {
  it("is answered with 204 and headers for the client, and above the limit with the refusal", async () => {
    const headers = original("GET", "/")
    const first = await check("/check/shop", { headers })
    expect([first.status, first.body]).toEqual([204, ""])
    expect(first.headers).toMatchObject({
      "ratelimit-policy": '"per-ip";q=2;w=86400',
      ratelimit: expect.stringMatching(/^"per-ip";r=1;t=\d+$/),
      "cache-control": "no-store",
    })
    expect((await check("/check/shop", { headers })).status).toBe(204)
    const refused = await check("/check/shop", { headers })
    expect(refused.status).toBe(429)
    expect(refused.headers).toMatchObject({
      "content-type": "application/problem+json",
      ratelimit: expect.stringMatching(/^"per-ip";r=0;t=\d+$/),
    })
    expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1)
    expect(refused.headers["sluice-status"]).toBeUndefined()
    expect(JSON.parse(refused.body)).toMatchObject({ status: 429, "violated-policies": ["per-ip"] })
    // Another client has a separate quota.
    expect((await check("/check/shop", { headers: original("GET", "/", "192.0.2.8") })).status).toBe(204)
  })

  it.each(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND", "PURGE"])(
    "may use the method %s, because gateways use the client's method or their own",
    async (method) => {
      const { status } = await check("/check/shop", { method, headers: forwarded("GET", "/") })
      expect(status).toBe(204)
      await check("/check/shop", { method, headers: forwarded("GET", "/") })
      const refused = await check("/check/shop", { method, headers: forwarded("GET", "/") })
      expect([refused.status, refused.body === ""]).toEqual([429, method === "HEAD"])
    },
  )

  it.each<[string, string, Sent]>([
    ["X-Original-Method and X-Original-URI", "/check/7", { headers: original("POST", "/login?next=%2F") }],
    [
      "X-Original-Method and X-Original-URL, as ingress-nginx sends them",
      "/check/7",
      {
        headers: {
          "x-original-method": "POST",
          "x-original-url": "https://shop.example/login?next=/",
          ...xff("192.0.2.7"),
        },
      },
    ],
    ["X-Forwarded-Method and X-Forwarded-Uri", "/check/7", { headers: forwarded("POST", "/login") }],
    [
      "the method and the path after the service, as Envoy's ext_authz sends them",
      "/check/7/login?refused=200",
      { method: "POST", headers: xff("192.0.2.7, 127.0.0.1") },
    ],
    // The core normalizes paths as servers do before it compares them.
    ["a path with encoded characters", "/check/7", { headers: original("POST", "/l%6Fgin/") }],
    ["a path in upper case", "/check/7", { headers: original("POST", "//LOGIN") }],
    ["an encoded path after the service", "/check/7/l%6fgin", { method: "POST", headers: xff("192.0.2.7") }],
  ])("describes the client's request by %s", async (_what, path, sent) => {
    const { status, headers } = await check(path, sent)
    expect([status, headers["ratelimit-policy"]]).toEqual([204, '"logins";q=1;w=86400'])
    expect((await check(path, sent)).status).toBe(429)
  })

  it("ignores other parameters, because Caddy may add the client's query to the path", async () => {
    const { status } = await check("/check/shop?user=ann&next=%2F", {
      headers: forwarded("GET", "/?user=ann"),
    })
    expect(status).toBe(204)
  })

  it("treats HEAD as GET, like the core", async () => {
    const statuses: number[] = []
    for (const method of ["HEAD", "GET", "HEAD"]) {
      statuses.push((await check("/check/7", { headers: original(method, "/") })).status)
    }
    expect(statuses).toEqual([204, 204, 429])
  })

  it("provides the query, cookies, headers and host of the client's request to rules", async () => {
    const ask = (uri: string, cookie: string, host: string) => {
      const headers = { ...forwarded("GET", uri), cookie, "x-forwarded-host": host }
      return check("/check/fields", { headers }).then(({ status }) => status)
    }
    expect(await ask("/?user=ann", "session=1", "a.example")).toBe(204)
    expect(await ask("/other?user=ann", "session=1", "a.example")).toBe(429)
    expect(await ask("/?user=bob", "session=1", "a.example")).toBe(204)
    expect(await ask("/?user=ann", "session=2", "a.example")).toBe(204)
    expect(await ask("/?user=ann", "session=1", "b.example")).toBe(204)
    // A repeated parameter counts as a missing field.
    expect(await ask("/?user=ann&user=bob", "session=1", "a.example")).toBe(400)
  })

  it("is answered with the status and body of the rule, or with 400 for a missing field", async () => {
    const headers = { ...original("GET", "/"), "x-api-key": "a" }
    expect((await check("/check/texts", { headers })).status).toBe(204)
    const refused = await check("/check/texts", { headers })
    expect([refused.status, refused.body]).toEqual([420, "slower, please"])
    expect((await check("/check/texts", { headers: original("GET", "/") })).status).toBe(400)
  })

  it("of a service without rules is answered like any other call about this service", async () => {
    const headers = original("GET", "/")
    expect((await check("/check/nobody", { headers })).status).toBe(204)
    await restart({ unknownServices: "refuse" })
    const refused = await check("/check/no%20body", { headers })
    expect([refused.status, JSON.parse(refused.body).detail]).toEqual([
      403,
      'Service "no body" is not registered.',
    ])
  })
})

describe("the parameter refused, for gateways that pass on only some statuses,", () => {
  it("sets the status of every refusal, and Sluice-Status contains the client's status", async () => {
    const headers = { ...original("GET", "/"), "x-api-key": "a" }
    expect((await check("/check/texts?refused=403", { headers })).headers["sluice-status"]).toBeUndefined()
    const refused = await check("/check/texts?refused=403", { headers })
    expect([refused.status, refused.headers["sluice-status"], refused.body]).toEqual([
      403,
      "420",
      "slower, please",
    ])
    expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1)
    const missing = await check("/check/texts?refused=401", { headers: original("GET", "/") })
    expect([missing.status, missing.headers["sluice-status"]]).toEqual([401, "400"])
  })

  it.each(["200", "600", "", "4e2", "403&refused=429", "403%20", "0403"])(
    "cannot be %j, so the check fails",
    async (text) => {
      const { status, body } = await check(`/check/shop?refused=${text}`, { headers: original("GET", "/") })
      expect([status, JSON.parse(body).message]).toEqual([
        400,
        expect.stringMatching(/^refused: .*is not a status from 400 to 599/),
      ])
    },
  )

  it("is never the status of an error, so that no error looks like a refusal", async () => {
    await restart({ decideTokens: tokens({ shop: "token-of-the-shop" }) })
    const headers = original("GET", "/")
    expect((await check("/check/shop", { headers })).status).toBe(401)
    for (const refused of [401, 403, 429]) {
      const { status, body } = await check(`/check/shop?refused=${refused}`, { headers })
      expect([status, JSON.parse(body).code]).toEqual([500, "unauthenticated"])
    }
    expect((await check("/check/shop?refused=400", { headers: {} })).status).toBe(500)
  })
})

describe("a check that does not describe exactly one request", () => {
  it.each<[string, Sent["headers"], RegExp]>([
    [
      "nothing",
      xff("192.0.2.7"),
      /^The client's request is not described; send X-Original-Method and X-Original-URI/,
    ],
    [
      "no method",
      { "x-original-uri": "/", ...xff("192.0.2.7") },
      /^X-Original-Method is missing; send it together with X-Original-URI/,
    ],
    [
      "no path",
      { "x-forwarded-method": "GET", ...xff("192.0.2.7") },
      /^X-Forwarded-Uri is missing; send it together/,
    ],
    ["an empty path", original("GET", ""), /^X-Original-URI is missing/],
    ["no address", { "x-original-method": "GET", "x-original-uri": "/" }, /^X-Forwarded-For is missing/],
    [
      "only the header Forwarded",
      { "x-original-method": "GET", "x-original-uri": "/", forwarded: "for=192.0.2.7" },
      /^X-Forwarded-For is missing/,
    ],
    ["an invalid method", original("GET /", "/"), /^X-Original-Method is not a method/],
    ["a relative path", original("GET", "login"), /^X-Original-URI is not a path or a URL/],
    [
      "a header twice",
      { ...original("GET", "/"), "x-original-uri": ["/", "/login"] },
      /^X-Original-URI is repeated/,
    ],
    [
      "a method that the client has added",
      { ...original("GET", "/"), "x-forwarded-method": "OPTIONS" },
      /describe more than one request/,
    ],
    [
      "another request in headers of the client",
      { ...original("POST", "/login"), ...forwarded("GET", "/") },
      /^X-Original-Method, X-Original-URI, X-Forwarded-Method, X-Forwarded-Uri describe more than one request; /,
    ],
    [
      "another URL in a header of the client",
      { ...original("POST", "/login"), "x-original-url": "https://shop.example/" },
      /^X-Original-Method, X-Original-URI, X-Original-URL describe more than one request; /,
    ],
  ])("is answered with 400 and takes no units if it contains %s", async (_what, headers, message) => {
    const reasons: string[] = []
    await restart({ onInvalidCheck: (reason, peer) => void reasons.push(`${reason} ${peer}`) })
    const { status, body } = await check("/check/7", { headers })
    expect([status, JSON.parse(body).code]).toEqual([400, "invalid_argument"])
    expect(JSON.parse(body).message).toMatch(message)
    expect(reasons).toEqual([`${JSON.parse(body).message} 127.0.0.1`])
  })

  it.each([
    ["/check", /^The path has no service; send \/check\/<service>/],
    ["/check/", /^The path has no service/],
    ["/check?refused=403", /^The path has no service/],
    ["/check/%zz", /^The service in the path is not valid/],
    [`/check/${"x".repeat(257)}`, /^service: has 257 characters/],
  ])("is answered with 400 if its path is %s", async (path, message) => {
    const { status, body } = await check(path, { headers: original("GET", "/") })
    expect(status).toBe(400)
    expect(JSON.parse(body).message).toMatch(message)
  })

  it("is answered with 400 if both headers and the path describe a request", async () => {
    const headers = original("GET", "/")
    expect((await check("/check/7/login", { method: "POST", headers })).status).toBe(400)
    // A trailing slash in the gateway's configuration causes this error at the first request to another path.
    expect((await check("/check/7/", { headers: original("GET", "/login") })).status).toBe(400)
  })

  it("is not found if its path only begins with the same letters", async () => {
    expect((await check("/checks/shop", { headers: original("GET", "/") })).status).toBe(501)
  })
})

describe("trusted proxies", () => {
  it("are the only addresses that may describe requests", async () => {
    const reasons: string[] = []
    await restart({ onInvalidCheck: (reason, peer) => void reasons.push(`${reason} ${peer}`) })
    const refused = await check("/check/shop", { from: "127.0.0.2", headers: original("GET", "/") })
    expect(refused.status).toBe(403)
    expect(JSON.parse(refused.body).message).toMatch(
      /^127\.0\.0\.2 is not a trusted proxy; add it to --trusted-proxies/,
    )
    expect(reasons).toHaveLength(1)
    expect(
      (await check("/check/shop?refused=403", { from: "127.0.0.2", headers: original("GET", "/") })).status,
    ).toBe(500)
  })

  it("are the loopback addresses by default", async () => {
    await restart({ trustedProxies: undefined })
    const sent = { from: "127.0.0.2", headers: original("GET", "/") }
    expect((await check("/check/shop", sent)).status).toBe(204)
  })

  it("are skipped in X-Forwarded-For from the right, so that a client cannot choose its address", async () => {
    await restart({ trustedProxies: ["127.0.0.1", "10.0.0.0/8"] })
    const remaining = async (list: string) => {
      const { status, headers } = await check("/check/shop", { headers: original("GET", "/", list) })
      return [status, /r=(\d)/.exec(String(headers.ratelimit))?.[1]]
    }
    expect(await remaining("192.0.2.7")).toEqual([204, "1"])
    expect(await remaining("198.51.100.1, 192.0.2.7, 10.1.2.3")).toEqual([204, "0"])
    expect(await remaining("198.51.100.2, 192.0.2.7:4711")).toEqual([429, "0"])
    // IPv6 clients are counted by their /64 network.
    expect(await remaining("2001:db8::1")).toEqual([204, "1"])
    expect(await remaining("[2001:db8::2]:443")).toEqual([204, "0"])
  })

  it("that are invalid are rejected when the service is created", async () => {
    await expect(startService(RULES, { trustedProxies: ["10.0.0.0/33"] })).rejects.toThrow(/10\.0\.0\.0\/33/)
  })
})

describe("tokens for decisions", () => {
  it("are required from gateways, in Authorization or in Sluice-Token", async () => {
    const wrong: string[] = []
    const decideTokens = tokens({ shop: "token-of-the-shop", texts: "token-of-texts" })
    await restart({ decideTokens, onWrongToken: (path) => void wrong.push(path) })
    const ask = (token: object) =>
      check("/check/shop", { headers: { ...original("GET", "/"), ...token } }).then(({ status }) => status)
    expect(await ask({})).toBe(401)
    expect(await ask({ authorization: "Bearer token-of-texts" })).toBe(403)
    expect(await ask({ authorization: "Bearer token-of-the-shop" })).toBe(204)
    // Traefik and Envoy forward the client's own Authorization header.
    expect(await ask({ authorization: "Bearer of-the-client", "sluice-token": "token-of-the-shop" })).toBe(
      204,
    )
    expect(await ask({ authorization: "Bearer token-of-the-shop", "sluice-token": "wrong" })).toBe(403)
    expect(wrong).toEqual(["/check", "/check", "/check"])
  })
})

describe("a client's request that a gateway passes on", () => {
  it.each<[string, Sent]>([
    ["a body with a type", { body: "a=1", headers: { "content-type": "application/x-www-form-urlencoded" } }],
    ["a body that is not JSON", { body: "{", headers: { "content-type": "application/json" } }],
    ["a compressed body", { body: "xx", headers: { "content-encoding": "gzip" } }],
    ["a body in pieces", { body: "xx", headers: { "transfer-encoding": "chunked" } }],
    ["a timeout of another protocol", { headers: { "connect-timeout-ms": "never" } }],
    ["an upgrade", { headers: { connection: "upgrade", upgrade: "websocket" } }],
  ])("may contain %s, which is ignored", async (_what, sent) => {
    const headers = { ...original("POST", "/"), ...sent.headers }
    expect((await check("/check/shop", { method: "POST", ...sent, headers })).status).toBe(204)
  })

  it("does not delay the response if its body never arrives, but its connection is closed", async () => {
    const { port, hostname } = new URL(started.http)
    const socket = connect(Number(port), hostname)
    let said = ""
    socket.on("data", (piece) => {
      said += piece
    })
    const ended = new Promise((resolve) => socket.once("end", resolve))
    // nginx sends Content-Length without a body, unless proxy_set_header removes this header.
    socket.write(
      "GET /check/shop HTTP/1.1\r\nHost: sluice\r\nX-Original-Method: POST\r\nX-Original-URI: /\r\nX-Forwarded-For: 192.0.2.7\r\nContent-Length: 50\r\n\r\n",
    )
    await ended
    expect(said).toMatch(/^HTTP\/1\.1 204 No Content\r\n[\s\S]*connection: close\r\n/i)
    socket.destroy()
  })

  it("does not close its connection if it has no body", async () => {
    const { headers } = await check("/check/shop", {
      headers: { ...original("GET", "/"), connection: "keep-alive" },
    })
    expect(headers.connection).toBe("keep-alive")
  })
})

describe("the bounds of calls", () => {
  it("apply to a held check, which takes a place and is refunded when the gateway hangs up", async () => {
    const answered: string[] = []
    const bounds = { maxMessageBytes: 1_024, maxInFlight: 2, maxRequests: 10, arrivalMs: 10_000 }
    await restart({ bounds, onAnswered: (door, path, code) => void answered.push(`${door} ${path} ${code}`) })
    const headers = original("GET", "/")
    expect((await check("/check/held", { headers })).status).toBe(204)
    const gone = new AbortController()
    const held = check("/check/held", { headers, signal: gone.signal }).catch(() => "gone")
    const statusOf = async (path: string) => (await check(path, { headers })).status
    // One address may use three quarters of the two places, which is one place.
    await until("a place is taken", async () => (await statusOf("/check/held")) === 503)
    expect(await statusOf("/check/shop")).toBe(204)
    gone.abort()
    expect(await held).toBe("gone")
    await until("it is answered", () => answered.at(-1) === "http /check 1")
    expect(new Set(answered)).toEqual(new Set(["http /check 0", "http /check 14", "http /check 1"]))
  })

  it("end a held check with 503 and close its connection when the service shuts down", async () => {
    const headers = { ...original("GET", "/"), connection: "keep-alive" }
    expect((await check("/check/held", { headers })).headers.connection).toBe("keep-alive")
    let calls = 0
    const held = check("/check/held", { headers }).finally(() => calls++)
    // The response to a later check shows that the earlier one has arrived.
    await check("/check/shop", { headers })
    expect(calls).toBe(0)
    expect(await started.end(5_000)).toBe(true)
    const { status, headers: answered } = await held
    expect([status, answered.connection]).toEqual([503, "close"])
    await start()
  })

  it("refuse headers of more than 16 KiB with 431, which no gateway treats as an admission", async () => {
    const headers = { ...original("GET", "/"), cookie: "x".repeat(20_000) }
    expect((await check("/check/shop", { headers })).status).toBe(431)
  })
})
