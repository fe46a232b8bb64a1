import { createLimiter, InvalidOptionError, memoryStore, type RejectionAnswer } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { contextOf, fromProxies, type RateLimit, type RateLimitOptions, rateLimit } from "./index.ts"

/** The second argument that a server passes to a handler. */
interface Server {
  readonly peer?: string
  readonly user?: string
}
const ALICE: Server = { peer: "192.0.2.1" }
const BOB: Server = { peer: "192.0.2.2" }

const warnings: { readonly code: string; readonly message: string }[] = []
const log = ({ code }: { readonly code: string }, message: string): void =>
  void warnings.push({ code, message })

/** Returns options for one request per minute and client, with a clock that does not advance. */
function once(more: object = {}): RateLimitOptions<Server> {
  warnings.length = 0
  const address = (_request: Request, server: Server): string | undefined => server.peer
  const rule = { limit: 1, window: "1 minute", clientAddress: address }
  return {
    clock: manualClock(),
    logger: { warn: log, error: log },
    ...rule,
    ...more,
  } as RateLimitOptions<Server>
}

/** Creates the function before the first request, in an earlier task of the event loop, as apps do. */
async function started(options: RateLimitOptions<Server>): Promise<RateLimit<Server>> {
  return rateLimit(options)
}

const asked = (path = "/", init?: RequestInit): Request => new Request(`http://shop.example${path}`, init)
const told = ({ headers }: Response): (string | null)[] => [
  headers.get("ratelimit-policy"),
  headers.get("ratelimit"),
]

describe("rateLimit", () => {
  it("throws immediately for an invalid option", () => {
    expect(() => rateLimit(once({ limit: 0 }))).toThrow(InvalidOptionError)
    expect(() => rateLimit({ ...once(), windowMs: 60_000 } as never)).toThrow(/windowMs/)
    expect(() => rateLimit({ ...once(), limiter: {} } as never)).toThrow(/is given together with limiter/)
    expect(() => rateLimit({ limiter: {}, clientAddress: () => undefined } as never)).toThrow(
      /is not a limiter/,
    )
  })

  it("throws if no option specifies where the address comes from", () => {
    for (const options of [
      undefined,
      {},
      { limit: 1, window: "1m" },
      { ...once(), clientAddress: "fromBun" },
    ]) {
      expect(() => rateLimit(options as never)).toThrow(
        /clientAddress: .* does not have an address.*fromBun.*fromProxies/,
      )
    }
  })

  it("throws if the address comes from proxies and their number is not given", () => {
    for (const trustedProxies of [undefined, 0, ["10.0.0.0/8"]]) {
      const options = once({ clientAddress: fromProxies, trustedProxies })
      expect(() => rateLimit(options)).toThrow(/trustedProxies: is not a number of proxies/)
    }
    const limiter = createLimiter<Request>({ limit: 1, window: "1m", trustedProxies: 1 })
    expect(rateLimit({ limiter, clientAddress: fromProxies }).limiter).toBe(limiter)
  })

  it("creates a function that rejects if it is called without a Request", async () => {
    const limit = await started(once())
    for (const other of [undefined, {}, { headers: {} }, { req: { raw: asked() } }]) {
      await expect(limit(other as never, ALICE)).rejects.toThrow(
        /request: is not a Request.*event\.req in h3/,
      )
    }
  })

  it("counts clients by the address that the proxies report if the connection is not visible", async () => {
    const limit = await started({ ...once(), clientAddress: fromProxies, trustedProxies: 1 })
    const from = async (forwarded: string) => {
      const limited = await limit(asked("/", { headers: { "x-forwarded-for": forwarded } }), ALICE)
      return limited.response?.status
    }
    // Only the last entry was written by the proxy.
    expect(await from("198.51.100.1, 203.0.113.1")).toBe(undefined)
    expect(await from("198.51.100.2, 203.0.113.1")).toBe(429)
    expect(await from("198.51.100.1, 203.0.113.2")).toBe(undefined)
    expect(warnings).toEqual([])
  })

  it("warns about a request without an address, and refuses it if the rule requires this", async () => {
    const limit = await started(once({ field: "ip", onMissing: "deny" }))
    expect((await limit(asked(), {})).response?.status).toBe(400)
    expect(warnings.map(({ code }) => code)).toEqual(["SLUICE_ADDRESS_UNKNOWN"])
  })

  it.each<[what: string, clientAddress: () => unknown, said: string]>([
    [
      "throws",
      () => {
        throw new Error("no server")
      },
      "failed: Error: no server",
    ],
    ["returns a promise that rejects", () => Promise.reject(new Error("no")), "returned [object Promise]"],
    ["returns an object", () => ({ address: "192.0.2.1" }), "returned [object Object]"],
  ])("reports only once that a clientAddress function %s", async (_what, clientAddress, said) => {
    const limit = await started(once({ limit: 2, clientAddress }))
    const statuses = [await limit(asked(), ALICE), await limit(asked(), ALICE), await limit(asked(), ALICE)]
    expect(statuses.map(({ response }) => response?.status)).toEqual([undefined, undefined, 429])
    expect(warnings.map(({ code }) => code)).toEqual(["SLUICE_INVALID_OPTION", "SLUICE_ADDRESS_UNKNOWN"])
    expect(warnings[0]?.message).toContain(said)
  })

  it("exposes the decision on a request, and lets the app peek at and reset the client's counter", async () => {
    const limit = await started(once({ limit: 3 }))
    const request = asked()
    expect(limit.limiter.decisionOn(request)).toBe(undefined)
    await limit(request, ALICE)
    expect(limit.limiter.decisionOn(request)).toMatchObject({ allowed: true, remaining: 2 })
    expect((await limit.limiter.peek(request)).remaining).toBe(2)
    await limit.limiter.reset(request)
    expect((await limit.limiter.peek(request)).remaining).toBe(3)
  })
})

describe("the functions in the options", () => {
  it("can read the context of the request", async () => {
    const seen: unknown[] = []
    const limit = await started({
      ...once(),
      field: "user",
      fields: { user: (request) => contextOf(request)?.user },
      skip: (request) => seen.push(contextOf(request)) < 0,
      refundWhen: (request) => seen.push(contextOf(request)) < 0,
      onRejected: (request, _rejection, _decision, context) => {
        seen.push(context === contextOf(request))
        return undefined
      },
    })
    const [ann, ben] = [{ user: "ann" }, { user: "ben" }]
    const request = asked()
    const limited = await limit(request, ann)
    limited.withHeaders?.(new Response("ok"))
    expect((await limit(asked(), ann)).response?.status).toBe(429)
    expect((await limit(asked(), ben)).response).toBe(undefined)
    expect(seen).toEqual([ann, ann, ann, true, ann, ben])
    expect(contextOf(asked())).toBe(undefined)
  })

  it("can provide facts that a Request does not contain", async () => {
    let reads = 0
    const limit = await started(
      once({
        field: ["route", "param:id", "body:user"],
        match: { path: "/users/:id" },
        facts: (_request: Request, { user }: Server) => {
          reads++
          return { routedUrl: "/users/7", route: "/users/:id", params: { id: "7" }, body: { user } }
        },
      }),
    )
    const as = async (path: string, user: string) => (await limit(asked(path), { user })).response?.status
    expect(await as("/users/7/__data.json", "ann")).toBe(undefined)
    expect(await as("/anything", "ann")).toBe(429)
    expect(await as("/users/7/__data.json", "ben")).toBe(undefined)
    expect(reads).toBe(3)
  })

  it.each([
    [
      "throws",
      () => {
        throw new Error("no route")
      },
      "failed: Error: no route",
    ],
    ["returns a promise", async () => ({}), "returned [object Promise]"],
    ["returns nothing", () => undefined, "returned [object Undefined]"],
  ])("cause one warning if the facts function %s", async (_what, facts, said) => {
    const limit = await started(once({ match: { path: "/login" }, facts }))
    expect((await limit(asked("/login"), ALICE)).response).toBe(undefined)
    expect((await limit(asked("/login"), ALICE)).response?.status).toBe(429)
    expect(warnings.map(({ code }) => code)).toEqual(["SLUICE_INVALID_OPTION"])
    expect(warnings[0]?.message).toContain(said)
  })
})

describe("a refusal", () => {
  it("is a complete response, and the handler does not run", async () => {
    let handled = 0
    const handler = (await started(once())).wrap(() => new Response(String(++handled)))
    expect(await (await handler(asked(), ALICE)).text()).toBe("1")
    const refused = await handler(asked(), ALICE)
    expect(refused.status).toBe(429)
    expect(Object.fromEntries(refused.headers)).toEqual({
      "cache-control": "no-store",
      "content-type": "application/problem+json",
      ratelimit: '"ip-1m";r=0;t=61',
      "ratelimit-policy": '"ip-1m";q=1;w=60',
      "retry-after": "61",
    })
    expect(await refused.json()).toMatchObject({ status: 429, "violated-policies": ["ip-1m"] })
    expect(handled).toBe(1)
  })

  it("has no withHeaders function, so that code which ignores the refusal fails", async () => {
    const limit = await started(once({ deny: ["192.0.2.1"] }))
    expect((await limit(asked(), ALICE)).withHeaders).toBe(undefined)
  })

  const own = (): Response => Response.json({ slow: "down" }, { status: 403, headers: { "x-own": "yes" } })
  it.each<[what: string, onRejected: () => unknown, status: number, body: RegExp]>([
    ["a Response", own, 403, /^\{"slow":"down"\}$/],
    ["a promise of a Response", async () => own(), 403, /^\{"slow":"down"\}$/],
    [
      "status, headers and body",
      (): RejectionAnswer => ({ status: 402, headers: [["x-own", "yes"]], body: "pay" }),
      402,
      /^pay$/,
    ],
    [
      "a status without a body",
      (): RejectionAnswer => ({ status: 204, headers: [["x-own", "yes"]], body: "" }),
      204,
      /^$/,
    ],
    ["nothing", () => undefined, 429, /quota-exceeded/],
    ["false, from code without types", () => false, 429, /quota-exceeded/],
  ])("is a complete response if onRejected returns %s", async (_what, onRejected, status, body) => {
    const limit = await started(once({ onRejected }))
    await limit(asked(), ALICE)
    const { response } = await limit(asked(), ALICE)
    expect(response?.status).toBe(status)
    expect(response?.headers.get("x-own")).toBe(status === 429 ? null : "yes")
    expect(response?.headers.get("retry-after")).toBe("61")
    expect(told(response as Response)).toEqual(['"ip-1m";q=1;w=60', '"ip-1m";r=0;t=61'])
    expect(await response?.text()).toMatch(body)
    expect(warnings).toEqual([])
  })

  it("becomes a rejected promise if onRejected fails, even for a wrapped handler", async () => {
    for (const thrown of [new Error("oops"), undefined]) {
      const limit = await started(once({ onRejected: () => Promise.reject(thrown) }))
      await limit(asked(), ALICE)
      await expect(limit(asked(), ALICE)).rejects.toThrow(thrown?.message ?? "a value that is not an Error")
      const get = limit.wrap(() => new Response())
      await expect(get(asked(), ALICE)).rejects.toThrow(Error)
    }
    expect(warnings).toEqual([])
  })
})

describe("withHeaders", () => {
  const admit = async (response: Response, more: object = {}) => {
    const limited = await (await started(once(more)))(asked(), ALICE)
    return limited.withHeaders?.(response) as Response
  }

  it("adds the headers to the response itself", async () => {
    const response = new Response("ok")
    expect(await admit(response)).toBe(response)
    expect(told(response)).toEqual(['"ip-1m";q=1;w=60', '"ip-1m";r=0;t=61'])
  })

  it("copies a response whose headers are immutable", async () => {
    // Use Node's own class, because servers such as Hono's replace the global class for the whole process.
    const { redirect: redirectTo } = (await fetch("data:,")).constructor as typeof Response
    const redirect = redirectTo("http://shop.example/other", 307)
    const redirected = await admit(redirect)
    expect([redirected.status, redirected.headers.get("location")]).toEqual([
      307,
      "http://shop.example/other",
    ])
    expect(told(redirected)).toEqual(['"ip-1m";q=1;w=60', '"ip-1m";r=0;t=61'])
    expect(told(redirect)).toEqual([null, null])
    const fetched = await admit(await fetch("data:text/plain,hello"))
    expect([fetched.headers.get("content-type"), await fetched.text()]).toEqual(["text/plain", "hello"])
    expect(told(fetched)).toEqual(['"ip-1m";q=1;w=60', '"ip-1m";r=0;t=61'])
  })

  it("returns a protocol switch unchanged, because it cannot be copied", async () => {
    const response = Object.defineProperty(Response.redirect("http://shop.example/", 302), "status", {
      value: 101,
    })
    expect(await admit(response)).toBe(response)
  })

  it("keeps the app's own headers and all cookies", async () => {
    const headers = new Headers({ "RateLimit-Policy": "own" })
    for (const cookie of ["a=1", "b=2"]) headers.append("Set-Cookie", cookie)
    const response = await admit(new Response("ok", { headers }))
    expect(told(response)).toEqual(["own", '"ip-1m";r=0;t=61'])
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"])
  })

  it("does not read the response's stream", async () => {
    let pulls = 0
    const body = new ReadableStream(
      {
        pull: (controller) =>
          ++pulls < 3 ? controller.enqueue(new Uint8Array([64 + pulls])) : controller.close(),
      },
      { highWaterMark: 0 },
    )
    const response = await admit(new Response(body))
    expect(pulls).toBe(0)
    expect(await response.text()).toBe("AB")
  })

  it("does not send one client's quota to another client if the app reuses a response", async () => {
    const NO_CONTENT = new Response(null, { status: 204, headers: { "x-own": "yes" } })
    const limit = await started(once({ limit: 2, skip: (request: Request) => request.url.endsWith("/free") }))
    const get = limit.wrap(() => NO_CONTENT)
    const [alice, again, bob, free] = [
      await get(asked(), ALICE),
      await get(asked(), ALICE),
      await get(asked(), BOB),
      await get(asked("/free"), BOB),
    ]
    const left = [alice, again, bob, free].map((response) => response.headers.get("ratelimit"))
    expect(left).toEqual(['"ip-1m";r=1;t=61', '"ip-1m";r=0;t=61', '"ip-1m";r=1;t=61', null])
    expect(free.headers.get("x-own")).toBe("yes")
  })

  it("omits headers that a later limiter of the request has removed", async () => {
    const outer = await started(once({ name: "all", headers: "legacy" }))
    const inner = await started(once({ name: "login", headers: "draft-11" }))
    const response = await outer.wrap(inner.wrap(() => new Response("ok")))(asked(), ALICE)
    const names = [...response.headers.keys()].filter((name) => name.includes("ratelimit"))
    expect(names).toEqual(["ratelimit", "ratelimit-policy"])
  })
})

describe("refundWhen", () => {
  const setUp = async () => {
    const statuses: number[] = []
    const refundWhen = (_request: Request, status: number): boolean =>
      statuses.push(status) > 0 && status < 400
    return { statuses, limit: await started(once({ refundWhen })) }
  }

  it.each<[thrown: unknown, status: number]>([
    [new Error("oops"), 500],
    [Object.assign(new Error("no such page"), { status: 404 }), 404],
    [new Response(null, { status: 302 }), 302],
    [Object.assign(new Error("odd"), { status: "404" }), 500],
    [undefined, 500],
  ])("receives the status of the error that a wrapped handler throws: %s", async (thrown, status) => {
    const { limit, statuses } = await setUp()
    const handler = limit.wrap(() => {
      throw thrown
    })
    const failed = await handler(asked(), ALICE).then(
      () => "answered",
      (error: unknown) => error,
    )
    expect(failed).toBe(thrown)
    expect(statuses).toEqual([status])
  })

  it("is not called if the client has hung up", async () => {
    const { limit, statuses } = await setUp()
    const client = new AbortController()
    const limited = await limit(asked("/", { signal: client.signal }), ALICE)
    client.abort()
    limited.withHeaders?.(new Response("ok"))
    expect(statuses).toEqual([])
    expect((await limit(asked(), ALICE)).response?.status).toBe(429)
  })
})

describe("a request to a limiter with a queue", () => {
  const queue = { throttle: { kind: "queue", maxWaitMs: 600_000 }, store: memoryStore() }

  it("is released when its client hangs up, and takes no units", async () => {
    const clock = manualClock()
    const limit = await started(once({ ...queue, clock, store: memoryStore({ clock }) }))
    await limit(asked(), ALICE)
    const client = new AbortController()
    const held = limit(asked("/", { signal: client.signal }), ALICE)
    const next = limit(asked(), ALICE)
    await new Promise(setImmediate)
    expect(limit.limiter.status.waiting).toBe(2)
    client.abort()
    const { response } = await held
    expect([response?.status, response?.body]).toEqual([499, null])
    clock.advance(60_001)
    expect((await next).response).toBe(undefined)
  })

  it("is not held if its client has already hung up", async () => {
    const limit = await started(once(queue))
    await limit(asked(), ALICE)
    const gone = await limit(asked("/", { signal: AbortSignal.abort() }), ALICE)
    expect(gone.response?.status).toBe(499)
  })

  it("has no abort listener left after it is served", async () => {
    const clock = manualClock()
    const limit = await started(once({ ...queue, clock, store: memoryStore({ clock }) }))
    await limit(asked(), ALICE)
    const request = asked()
    let listening = 0
    const { signal } = request
    Object.defineProperty(request, "signal", {
      value: Object.assign(new AbortController().signal, {
        addEventListener: () => void listening++,
        removeEventListener: () => void listening--,
      }),
    })
    expect(signal.aborted).toBe(false)
    const held = limit(request, ALICE)
    await new Promise(setImmediate)
    expect(listening).toBe(1)
    clock.advance(60_001)
    expect((await held).response).toBe(undefined)
    expect(listening).toBe(0)
  })
})

describe("wrap", () => {
  it("returns undefined if the handler does, as Bun requires for a WebSocket upgrade", async () => {
    const handler = (await started(once())).wrap(async (): Promise<Response | undefined> => undefined)
    expect(await handler(asked(), ALICE)).toBe(undefined)
    expect((await handler(asked(), ALICE))?.status).toBe(429)
  })

  it("passes the request, the context and further arguments of the server to the handler", async () => {
    const seen: unknown[] = []
    const request = asked()
    const handler = (await started(once())).wrap((...args: [Request, Server, symbol]) => {
      seen.push(...args)
      return new Response("ok")
    })
    const further = Symbol("the ExecutionContext of a Cloudflare Worker")
    await handler(request, ALICE, further)
    expect(seen).toEqual([request, ALICE, further])
  })
})
