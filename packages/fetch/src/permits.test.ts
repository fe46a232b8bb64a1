import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { rateLimit } from "./index.ts"

const HELD = 1
const RELEASED = 0

function setUp() {
  const limiter = createLimiter<Request>({
    rules: [{ name: "in-flight", field: "service", concurrent: 9 }],
    clock: manualClock(),
  })
  const limit = rateLimit({ limiter, clientAddress: () => undefined })
  const held = () => limiter.status.inFlight
  return { limiter, limit, held }
}

function request(more: RequestInit = {}): Request {
  return new Request("http://localhost/", more)
}

/** Returns a body of three chunks. Rejects the third read if `error` is set. */
function chunks(error?: Error) {
  const seen: { pulls: number; canceled?: unknown } = { pulls: 0 }
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (++seen.pulls === 3 && error !== undefined) controller.error(error)
        else if (seen.pulls === 4) controller.close()
        else controller.enqueue(Uint8Array.of(seen.pulls))
      },
      cancel(reason) {
        seen.canceled = reason
      },
    },
    { highWaterMark: 0 },
  )
  return { body, seen }
}

describe("a request with a permit", () => {
  it("holds it until its body has been read, which is only read when the server requests it", async () => {
    const { limit, held, limiter } = setUp()
    const { body, seen } = chunks()
    const handler = limit.wrap(() => new Response(body, { status: 201, headers: { "X-Own": "1" } }))
    const response = await handler(request(), undefined)
    expect([held(), seen.pulls, response.status]).toEqual([HELD, 0, 201])
    expect([...response.headers.keys()]).toEqual(["ratelimit", "ratelimit-policy", "x-own"])
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    expect((await reader.read()).value).toEqual(Uint8Array.of(1))
    expect([held(), seen.pulls]).toEqual([HELD, 1])
    expect([(await reader.read()).value, (await reader.read()).value]).toEqual([
      Uint8Array.of(2),
      Uint8Array.of(3),
    ])
    expect(held()).toBe(HELD)
    expect((await reader.read()).done).toBe(true)
    expect(held()).toBe(RELEASED)
    expect((await limiter.peek(request())).remaining).toBe(9)
  })

  it("releases it when its body fails, and passes on the error", async () => {
    const { limit, held } = setUp()
    const response = await limit.wrap(() => new Response(chunks(new Error("broken")).body))(
      request(),
      undefined,
    )
    await expect(response.text()).rejects.toThrow("broken")
    expect(held()).toBe(RELEASED)
  })

  it("releases it when the server cancels its body, and passes on the reason", async () => {
    const { limit, held } = setUp()
    const { body, seen } = chunks()
    const response = await limit.wrap(() => new Response(body))(request(), undefined)
    await response.body?.cancel("gone")
    expect([held(), seen.canceled]).toEqual([RELEASED, "gone"])
  })

  it.each<[string, RequestInit, () => Response | undefined]>([
    ["a response without a body", {}, () => new Response(null, { status: 204 })],
    ["HEAD", { method: "HEAD" }, () => new Response("never sent")],
    ["a redirect", {}, () => Response.redirect("http://localhost/there", 302)],
    ["a connection that Bun has upgraded", {}, () => undefined],
  ])("releases it immediately for %s, and returns the same response", async (_case, more, respond) => {
    const { limit, held } = setUp()
    let own: Response | undefined
    let during: number | undefined
    const response = await limit.wrap(() => {
      during = held()
      own = respond()
      return own
    })(request(more), undefined)
    expect([during, held(), response?.status, response?.headers.get("x")]).toEqual([
      ...[HELD, RELEASED, own?.status, own?.headers.get("x")],
    ])
  })

  it("releases it when its handler throws", async () => {
    const { limit, held } = setUp()
    const failing = limit.wrap(() => Promise.reject(new Error("broken")))
    await expect(failing(request(), undefined)).rejects.toThrow("broken")
    expect(held()).toBe(RELEASED)
  })

  it("releases it when its client hangs up, before the handler has responded", async () => {
    const { limit, held } = setUp()
    const client = new AbortController()
    const limited = await limit(request({ signal: client.signal }))
    expect(held()).toBe(HELD)
    client.abort()
    expect(held()).toBe(RELEASED)
    expect(await limited.withHeaders?.(new Response("late")).text()).toBe("late")
  })

  it("releases it if its client has hung up before the decision", async () => {
    const { limit, held } = setUp()
    await limit(request({ signal: AbortSignal.abort() }))
    expect(held()).toBe(RELEASED)
  })

  it("keeps its permit while the other of two limiters reads the same body", async () => {
    const [outer, inner] = [setUp(), setUp()]
    const handler = outer.limit.wrap(inner.limit.wrap(() => new Response(chunks().body)))
    const response = await handler(request(), undefined)
    expect([outer.held(), inner.held()]).toEqual([HELD, HELD])
    expect((await response.arrayBuffer()).byteLength).toBe(3)
    expect([outer.held(), inner.held()]).toEqual([RELEASED, RELEASED])
  })
})

it("the response to a request without permits keeps its body", async () => {
  const limit = rateLimit({ limit: 9, window: "1 minute", clientAddress: () => "192.0.2.1" })
  const own = new Response("own")
  expect(await limit.wrap(() => own)(request(), undefined)).toBe(own)
})
