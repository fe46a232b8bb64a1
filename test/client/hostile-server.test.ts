import type { RequestListener, ServerResponse } from "node:http"
import { paced } from "@sluice/client"
import fc from "fast-check"
import { describe, expect, it, onTestFinished } from "vitest"
import { listen } from "../contracts/adapter/listen.ts"

// A server stalls, resets connections, lies and sends absurd headers. No call may wait too long, and no call may be
// lost.

const MAX_WAIT_MS = 300

async function serve(listener: RequestListener): Promise<string> {
  const { url, close } = await listen(listener)
  onTestFinished(close)
  return url
}

/**
 * Sends calls at the same time. Resolves with the outcome of each call, which is a status, or the name or code of an
 * error.
 */
function outcomes(url: string, calls: number, options = {}): Promise<(number | string)[]> {
  const api = paced(fetch, { maxWaitMs: MAX_WAIT_MS, ...options })
  const one = async (): Promise<number | string> => {
    try {
      const response = await api(url, { signal: AbortSignal.timeout(30_000) })
      await response.arrayBuffer()
      return response.status
    } catch (error) {
      return (error as { code?: string }).code ?? (error as Error).name
    }
  }
  return Promise.all(Array.from({ length: calls }, one))
}

const tally = (all: readonly (number | string)[]) =>
  Object.fromEntries(
    [...new Set(all)].sort().map((each) => [each, all.filter((other) => other === each).length]),
  )

describe("a server", () => {
  it("that stalls lets waiting calls fail at their deadline, and delays only its own call", async () => {
    const stalled: ServerResponse[] = []
    const url = await serve((_req, res) => void stalled.push(res))
    const calls = outcomes(url, 20)
    const api = paced(fetch, { maxWaitMs: MAX_WAIT_MS })
    const first = api(url, { signal: AbortSignal.timeout(600) }).catch((error: Error) => error.name)
    await expect(api(url)).rejects.toMatchObject({ code: "SLUICE_PACE_WAIT_TOO_LONG" })
    expect(await first).toBe("TimeoutError")
    for (const res of stalled) res.end()
    expect(tally(await calls)).toEqual({ 200: 1, SLUICE_PACE_WAIT_TOO_LONG: 19 })
  })

  it("that resets each connection causes an error of each call", async () => {
    const url = await serve((req) => req.socket.destroy())
    const all = await outcomes(url, 20, { maxWaitMs: 20_000 })
    expect(tally(all)).toEqual({ TypeError: 20 })
  })

  it("that resets a connection after the body has begun causes an error of this call only", async () => {
    let answered = 0
    const url = await serve((_req, res) => {
      if (answered++ > 0) return void res.end("ok")
      res.writeHead(200, { "Content-Length": "100", RateLimit: '"a";r=50;t=5' })
      res.write("half")
      setImmediate(() => res.destroy())
    })
    const all = await outcomes(url, 5, { maxWaitMs: 20_000 })
    expect(tally(all)).toEqual({ 200: 4, TypeError: 1 })
  })

  it("that refuses everything for a year makes no call wait", async () => {
    let asked = 0
    const url = await serve((_req, res) => {
      asked++
      res.writeHead(429, { "Retry-After": "31536000" }).end()
    })
    expect(tally(await outcomes(url, 20))).toEqual({ 429: 1, SLUICE_PACE_WAIT_TOO_LONG: 19 })
    expect(asked).toBe(1)
  })

  it("that refuses with an endless body does not hold the call", async () => {
    const url = await serve((_req, res) => {
      res.writeHead(429, { "Retry-After": "1", "Content-Type": "application/problem+json" })
      const timer = setInterval(() => res.write(" ".repeat(10_000)), 5)
      res.once("close", () => clearInterval(timer))
    })
    const api = paced(fetch, { retries: 1, maxWaitMs: 20_000 })
    const response = await api(url)
    expect(response.status).toBe(429)
    await response.body?.cancel()
  })

  it("that sends wrong remaining units still gets its calls", async () => {
    const lies = [
      '"a";r=999999999999999;t=0',
      '"a";r=0;t=0',
      '"a";r=1;t=0',
      "",
      '"a";r=0;t=',
      "\u00ff",
      '"a";r=-5;t=-5',
    ]
    let n = 0
    const url = await serve((_req, res) => {
      res
        .writeHead(200, {
          RateLimit: Buffer.from(lies[n++ % lies.length] as string, "latin1").toString("latin1"),
        })
        .end()
    })
    expect(tally(await outcomes(url, 30, { maxWaitMs: 60_000 }))).toEqual({ 200: 30 })
  })
})

it("each call ends with a response or an error with a code, whatever the headers", async () => {
  let headers: [string, string][] = []
  let status = 200
  const url = await serve((_req, res) => {
    for (const [name, value] of headers) res.setHeader(name, value)
    res.writeHead(status).end()
  })
  const name = fc.constantFrom(
    ...["RateLimit", "RateLimit-Policy", "RateLimit-Remaining", "RateLimit-Reset", "X-RateLimit-Remaining"],
    ...[
      "X-RateLimit-Reset",
      "X-RateLimit-Reset-After",
      "X-RateLimit-Remaining-Tokens",
      "X-RateLimit-Reset-Tokens",
    ],
    ...["Retry-After", "Retry-After-Ms", "Date", "Stripe-Should-Retry", "X-GitHub-Request-Id"],
  )
  const value = fc.oneof(
    fc.stringMatching(/^[ -~]{0,30}$/),
    fc.constantFrom(
      "0",
      "1",
      "-1",
      "1e400",
      "NaN",
      "9".repeat(30),
      '"a";r=0;t=9',
      '"a";r=5',
      "limit=1, remaining=0, reset=1",
    ),
    fc.constantFrom(
      "6m0s",
      "Thu, 01 Jan 1970 00:00:00 GMT",
      "Fri, 31 Dec 9999 23:59:59 GMT",
      "true",
      "false",
    ),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(name, value), { maxLength: 6 }),
      fc.constantFrom(200, 403, 429, 503),
      async (someHeaders, someStatus) => {
        headers = someHeaders
        status = someStatus
        const all = await outcomes(url, 3, { maxWaitMs: 20 })
        for (const each of all) expect([someStatus, "SLUICE_PACE_WAIT_TOO_LONG"]).toContain(each)
        expect(all).toContain(someStatus)
      },
    ),
    { numRuns: 100 },
  )
})
