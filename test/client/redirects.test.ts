import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { type PacedOptions, paced } from "@sluice/client"
import { describe, expect, it, onTestFinished } from "vitest"
import { listen } from "../contracts/adapter/listen.ts"

// An API redirects to another origin, whose headers describe only the limits of that origin.

const YEAR = { "Retry-After": "31536000" }
const NOTHING_LEFT = { RateLimit: '"a";r=0;t=86400', "RateLimit-Policy": '"a";q=9;w=86400' }

async function serve(listener: RequestListener): Promise<string> {
  const { url, close } = await listen(listener)
  onTestFinished(close)
  return url
}

/** Starts an API whose path /away redirects to another origin, which responds as `other` does. */
async function startTwo(
  other: RequestListener,
  status = 302,
  answer: (res: ServerResponse) => void = (res) => void res.end("ok"),
) {
  const seen: IncomingMessage[] = []
  const otherUrl = await serve((req, res) => {
    seen.push(req)
    other(req, res)
  })
  const own: string[] = []
  const url = await serve((req, res) => {
    own.push(`${req.method} ${req.url}`)
    if (req.url === "/away") res.writeHead(status, { Location: `${otherUrl}/there` }).end()
    else answer(res)
  })
  return { url, otherUrl, own, seen }
}

const KEYS: [string, PacedOptions, { key: string } | undefined][] = [
  ["the default key", {}, undefined],
  ["one key for all", { key: () => "all" }, undefined],
  ["a key by the path", { key: ({ url }) => (url.includes("/away") ? "away" : "core") }, undefined],
  ["a key of the call", {}, { key: "reports" }],
]

describe.each(KEYS)("a redirect to another origin, with %s,", (_name, options, pace) => {
  it("that refuses for a year does not block the first origin", async () => {
    const { url, otherUrl } = await startTwo((_req, res) => void res.writeHead(429, YEAR).end())
    const api = paced(fetch, options)
    const init = { headers: { Authorization: "Bearer t" }, ...(pace && { pace }) }
    expect((await api(`${url}/away`, init)).status).toBe(429)
    expect((await api(`${url}/here`, init)).status).toBe(200)
    const blocked = api.status().filter(({ blockedForMs }) => blockedForMs > 0)
    expect(blocked.map(({ key }) => key)).toEqual([otherUrl])
    await expect(paced(fetch)(`${otherUrl}/there`)).resolves.toMatchObject({ status: 429 })
  })

  it("that has no units left does not delay the calls of the first origin", async () => {
    const { url, otherUrl } = await startTwo((_req, res) => void res.writeHead(200, NOTHING_LEFT).end())
    const api = paced(fetch, { ...options, maxWaitMs: 100 })
    const init = pace && { pace }
    for (let i = 0; i < 3; i++) expect((await api(`${url}/away`, init)).status).toBe(200)
    expect((await api(`${url}/here`, init)).status).toBe(200)
    for (const { key, remaining } of api.status()) expect(remaining).toBe(key === otherUrl ? 0 : undefined)
  })
})

it("calls to the other origin itself wait for the time in its responses", async () => {
  const { url, otherUrl, seen } = await startTwo((_req, res) => void res.writeHead(429, YEAR).end())
  const api = paced(fetch)
  await api(`${url}/away`)
  await expect(api(`${otherUrl}/there`)).rejects.toMatchObject({
    ...{ code: "SLUICE_PACE_WAIT_TOO_LONG", key: otherUrl },
  })
  expect(seen).toHaveLength(1)
})

it("calls refused by the other origin are sent again after its Retry-After, beginning with a single call", async () => {
  const arrivedAt: number[] = []
  const { url, otherUrl, own } = await startTwo((_req, res) => {
    arrivedAt.push(performance.now())
    if (arrivedAt.length <= 3) res.writeHead(429, { "Retry-After": "1" }).end()
    else if (arrivedAt.length === 4) setTimeout(() => res.end("ok"), 150)
    else res.end("ok")
  })
  const api = paced(fetch)
  const events: unknown[] = []
  api.on("refused", (event) => events.push(event))
  await api(`${url}/here`)
  const responses = await Promise.all([1, 2, 3].map(() => api(`${url}/away`)))
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(arrivedAt).toHaveLength(6)
  expect((arrivedAt[3] as number) - (arrivedAt[2] as number)).toBeGreaterThanOrEqual(990)
  expect((arrivedAt[4] as number) - (arrivedAt[3] as number)).toBeGreaterThanOrEqual(140)
  expect(events).toEqual(Array(3).fill({ key: otherUrl, status: 429, waitMs: 1_000, isRetried: true }))
  expect(own).toHaveLength(7)
  expect(api.status().map(({ inFlight, waiting }) => inFlight + waiting)).toEqual([0, 0])
})

it("the refusals of the other origin use up no retries of the first origin's key", async () => {
  let refusals = 0
  const { url, own } = await startTwo(
    (_req, res) => void res.writeHead(429, { "Retry-After": "0" }).end(),
    302,
    (res) => void (refusals++ === 0 ? res.writeHead(429, { "Retry-After": "0" }).end() : res.end("ok")),
  )
  const api = paced(fetch, { retries: 100 })
  expect((await api(`${url}/away`)).status).toBe(429)
  expect(own).toHaveLength(11)
  expect((await api(`${url}/here`)).status).toBe(200)
  expect(own).toHaveLength(13)
})

it("a POST that was redirected is not sent again after a refusal, because the first origin has processed it", async () => {
  const { url, own } = await startTwo(
    (_req, res) => void res.writeHead(429, { "Retry-After": "0" }).end(),
    303,
  )
  const api = paced(fetch)
  expect((await api(`${url}/away`, { method: "POST", body: "order" })).status).toBe(429)
  expect(own).toEqual(["POST /away"])
})

it("a redirect within the origin is read as a response of the origin", async () => {
  const url = await serve((req, res) => {
    if (req.url === "/away") res.writeHead(302, { Location: "/there" }).end()
    else res.writeHead(429, YEAR).end()
  })
  const api = paced(fetch)
  expect((await api(`${url}/away`)).status).toBe(429)
  await expect(api(`${url}/here`)).rejects.toMatchObject({ code: "SLUICE_PACE_WAIT_TOO_LONG", key: url })
})

it("a redirect that is not followed is read as a response of the first origin", async () => {
  const url = await serve((_req, res) => {
    res.writeHead(302, { Location: "http://127.0.0.1:1/", RateLimit: '"a";r=7;t=60' }).end()
  })
  const api = paced(fetch)
  expect((await api(`${url}/away`, { redirect: "manual" })).status).toBe(302)
  expect(api.status()).toMatchObject([{ key: url, remaining: 7 }])
})

it("a redirect to an origin without a server fails its call, and leaves no call in flight", async () => {
  const url = await serve((_req, res) => void res.writeHead(302, { Location: "http://127.0.0.1:1/" }).end())
  const api = paced(fetch, { retries: 0 })
  await expect(api(`${url}/away`)).rejects.toThrow(TypeError)
  expect(api.status()).toMatchObject([{ key: url, inFlight: 0, waiting: 0 }])
})
