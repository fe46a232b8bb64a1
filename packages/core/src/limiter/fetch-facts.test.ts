import { describe, expect, it } from "vitest"
import { manualClock } from "../ground/manual-clock.ts"
import { createLimiter } from "./create-limiter.ts"
import type { LimiterOptions } from "./options/options.ts"

const WINDOW = "1 minute"

function limiterOf(options: Partial<LimiterOptions<unknown>>) {
  const warnings: string[] = []
  const logger = { warn: ({ code }: { code: string }) => void warnings.push(code), error() {} }
  const rule = { limit: 1, window: WINDOW, field: "service", clock: manualClock(), logger }
  const limiter = createLimiter<unknown>({ ...rule, ...options } as LimiterOptions<unknown>)
  const admits = async (...requests: unknown[]) => {
    const verdicts: boolean[] = []
    for (const request of requests) verdicts.push((await limiter.decide(request)).allowed)
    return verdicts
  }
  return { limiter, admits, warnings }
}

const requestOf = (headers: Record<string, string>, path = "/a", init: RequestInit = {}) =>
  new Request(`https://shop.example${path}`, { headers, ...init })

/** The same request in each shape that contains `Headers`. */
const SHAPES: readonly (readonly [string, (request: Request) => unknown])[] = [
  ["a Request", (request) => request],
  ["an object with Headers", ({ method, url, headers }) => ({ method, url, headers })],
  ["an object with a Map", ({ method, url, headers }) => ({ method, url, headers: new Map(headers) })],
]

describe.each(SHAPES)("the built-in fields of %s", (_shape, shaped) => {
  it("distinguish clients by a header, whatever its case in the rule", async () => {
    const { admits } = limiterOf({ field: "header:X-API-Key" })
    const [a, b] = [shaped(requestOf({ "X-Api-Key": "a" })), shaped(requestOf({ "x-api-key": "b" }))]
    expect(await admits(a, a, b, b)).toEqual([true, false, true, false])
  })

  it("distinguish clients by a cookie", async () => {
    const { admits } = limiterOf({ field: "cookie:session" })
    const of = (session: string) => shaped(requestOf({ cookie: `theme=dark; session=${session}` }))
    expect(await admits(of("1"), of("1"), of("2"))).toEqual([true, false, true])
  })

  it("read query parameters and the method from an absolute URL", async () => {
    const { admits } = limiterOf({ field: ["query:key", "method"] })
    const get = shaped(requestOf({}, "/a?key=1"))
    const head = shaped(requestOf({}, "/b?key=1#x", { method: "HEAD" }))
    const post = shaped(requestOf({}, "/a?key=1", { method: "POST" }))
    const other = shaped(requestOf({}, "/a?key=2"))
    expect(await admits(get, head, post, other)).toEqual([true, false, true, true])
  })

  it("match paths and methods", async () => {
    const { admits } = limiterOf({ match: { path: "/login/:step", methods: ["POST"] } })
    const login = shaped(requestOf({}, "/LOGIN/1/?x=2", { method: "POST" }))
    const others = [requestOf({}, "/login/1"), requestOf({}, "/logout", { method: "POST" })].map(shaped)
    expect(await admits(login, login, ...others)).toEqual([true, false, true, true])
  })

  it("read the client's address from the header of a trusted proxy", async () => {
    const { admits } = limiterOf({ field: "ip", trustedProxies: 1 })
    const of = (address: string) => shaped(requestOf({ "x-forwarded-for": `198.51.100.9, ${address}` }))
    expect(await admits(of("192.0.2.1"), of("192.0.2.1"), of("192.0.2.2"))).toEqual([true, false, true])
  })

  it("do not count a preflight", async () => {
    const { admits } = limiterOf({})
    const headers = { "access-control-request-method": "PUT", origin: "https://other.example" }
    // The fetch API does not let a page set the first header, but a server receives requests that contain it.
    const { url } = requestOf({})
    const preflight = { method: "OPTIONS", url, headers: new Map(Object.entries(headers)) }
    expect(await admits(preflight, preflight)).toEqual([true, true])
  })
})

describe("a request of the fetch API", () => {
  it("is passed to the app's own functions", async () => {
    const request = requestOf({ "x-user": "7" })
    const seen: unknown[] = []
    const user = (given: unknown) => {
      seen.push(given)
      return (given as Request).headers.get("x-user") ?? undefined
    }
    const { admits } = limiterOf({ field: "user", fields: { user } })
    expect(await admits(request, request, requestOf({ "x-user": "8" }))).toEqual([true, false, true])
    expect(seen[0]).toBe(request)
  })

  it("is counted by the address that is passed with it, or by the address of its socket", async () => {
    const { admits } = limiterOf({ field: "ip" })
    const { headers } = requestOf({})
    const of = (remoteAddress: string) => ({ headers, remoteAddress })
    expect(await admits(of("192.0.2.1"), { headers, socket: of("192.0.2.1") }, of("192.0.2.2"))).toEqual([
      true,
      false,
      true,
    ])
  })

  it("has no parsed body unless the app passes one, and logs a warning", async () => {
    const { admits, warnings } = limiterOf({ field: "body:user", onMissing: "skip" })
    const post = requestOf({ "content-length": "3" }, "/", { method: "POST", body: "u=1" })
    const bodiless = { headers: new Headers({ "content-length": "3" }), body: post.body }
    expect(await admits(post, bodiless, post)).toEqual([true, true, true])
    expect(warnings).toEqual(["SLUICE_BODY_NOT_PARSED"])
    const parsed = { headers: post.headers, body: { user: "1" } }
    expect(await admits(parsed, parsed)).toEqual([true, false])
  })

  it("has a body that no parser has read when its length is unknown", async () => {
    const { admits, warnings } = limiterOf({ field: "body:user", onMissing: "skip" })
    const post = new Request("https://shop.example/", { method: "POST", body: "u=1" })
    expect(post.headers.has("content-length")).toBe(false)
    expect(await admits(post)).toEqual([true])
    expect(warnings).toEqual(["SLUICE_BODY_NOT_PARSED"])
  })

  it("uses the app's parsed cookies, and reads the header if the app has only a cookie store", async () => {
    const { admits } = limiterOf({ field: "cookie:session" })
    const headers = new Headers({ cookie: "session=1" })
    const store = new Map([["session", "3"]])
    expect(
      await admits({ headers }, { headers, cookies: store }, { headers, cookies: { session: "2" } }),
    ).toEqual([true, false, true])
  })

  it("works with peek, reset and acquire", async () => {
    const { limiter, admits } = limiterOf({ field: "header:x-key" })
    const [a, b] = [requestOf({ "x-key": "a" }), requestOf({ "x-key": "b" })]
    expect(await admits(a, b)).toEqual([true, true])
    await limiter.reset(a)
    expect((await limiter.peek(a)).remaining).toBe(1)
    expect((await limiter.peek(b)).remaining).toBe(0)
    expect((await limiter.acquire(a)).allowed).toBe(true)
  })

  it("reads a header named __proto__ like any other header", async () => {
    const { admits } = limiterOf({ field: "header:__proto__" })
    const of = (value: string) => ({ headers: new Map([["__proto__", value]]) })
    expect(await admits(of("1"), of("1"), of("2"))).toEqual([true, false, true])
  })
})

it("a Request has no headers if reading them throws", async () => {
  const { admits } = limiterOf({ field: "ip" })
  const of = (remoteAddress: string) => ({
    remoteAddress,
    get headers(): Headers {
      throw new Error("no headers in static rendering")
    },
  })
  expect(await admits(of("192.0.2.1"), of("192.0.2.1"), of("192.0.2.2"))).toEqual([true, false, true])
})
