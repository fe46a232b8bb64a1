import { readFileSync } from "node:fs"
import type { IncomingMessage } from "node:http"
import { text } from "node:stream/consumers"
import { type PacedFetch, PaceError, paced } from "@sluice/client"
import type { AxiosInstance } from "axios"
import type { KyInstance } from "ky"
import type { Octokit } from "octokit"
import type OpenAI from "openai"
import type Stripe from "stripe"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { listen } from "../contracts/adapter/listen.ts"
import type { Block } from "../docs/blocks.ts"
import { ROOT } from "../docs/documents.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { runTypeScript } from "../docs/typescript/run.ts"
import { startLimitedApi } from "../servers/limited-api.ts"

// Runs the code of docs/client/calling.md with the real clients, against a rate-limited server on this machine.

const [clients] = blocksTestedBy("test/client/guide.test.ts", "docs/client/calling.md", 1)

type Headers = Record<string, string>
/** The recorded responses of the service to an admitted and to a refused call. */
interface Recorded {
  readonly quota: Readonly<Headers>
  readonly refusal: () => { readonly status: number; readonly headers: Headers; readonly body: object }
}

const OPENAI: Recorded = {
  quota: {
    "x-ratelimit-limit-requests": "500",
    "x-ratelimit-limit-tokens": "200000",
    "x-ratelimit-remaining-requests": "499",
    "x-ratelimit-remaining-tokens": "199983",
    "x-ratelimit-reset-requests": "120ms",
    "x-ratelimit-reset-tokens": "5ms",
    "x-request-id": "req_8c1c7a3b",
  },
  refusal: () => ({
    status: 429,
    headers: {
      "retry-after": "1",
      "retry-after-ms": "300",
      "x-ratelimit-limit-requests": "500",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "300ms",
      "x-should-retry": "true",
    },
    body: { error: { message: "Rate limit reached", type: "requests", code: "rate_limit_exceeded" } },
  }),
}
const GITHUB: Recorded = {
  quota: {
    "x-github-request-id": "C5F2:3A1B:2F9C31:3B2D55:66B0E0A4",
    "x-ratelimit-limit": "5000",
    "x-ratelimit-remaining": "4999",
    "x-ratelimit-reset": String(Math.floor(Date.now() / 1000) + 3_600),
    "x-ratelimit-resource": "core",
    "x-ratelimit-used": "1",
  },
  refusal: () => ({
    status: 403,
    headers: { "x-github-request-id": "C5F2:3A1B:2F9C40:3B2D61:66B0E0A9", "retry-after": "1" },
    body: {
      message: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
    },
  }),
}
const STRIPE: Recorded = {
  quota: { "request-id": "req_LqT6z1", "stripe-version": "2026-06-30.dahlia" },
  refusal: () => ({
    status: 429,
    headers: { "request-id": "req_xW3kP0", "stripe-should-retry": "true" },
    body: {
      error: { message: "Request rate limit exceeded.", type: "invalid_request_error", code: "rate_limit" },
    },
  }),
}
const SLUICE: Recorded = {
  quota: { "ratelimit-policy": '"api";q=100;w=60', ratelimit: '"api";r=99;t=60' },
  refusal: () => ({
    status: 429,
    headers: { "ratelimit-policy": '"api";q=100;w=60', ratelimit: '"api";r=0;t=1', "retry-after": "1" },
    body: { title: "Quota Exceeded", status: 429, "violated-policies": ["api"] },
  }),
}

/** The clients that the guide creates. */
interface Made {
  readonly kyClient: KyInstance
  readonly axiosClient: AxiosInstance
  readonly openai: OpenAI
  readonly octokit: Octokit
  readonly stripe: Stripe
}

interface Row {
  readonly name: string
  readonly recorded: Recorded
  /** The dialect that is read from the response to an admitted call. */
  readonly dialect: string | undefined
  /**
   * The member of the client's error that contains the PaceError. Undefined if the client rejects with the PaceError
   * itself.
   */
  readonly wraps?: "cause" | "detail"
  /** Sends one call. Resolves with a part of the response, which proves that the client has parsed the response. */
  readonly call: (made: Made) => Promise<unknown>
  /** The response of the service, and the part of it that `call` returns. */
  readonly answer: object
  readonly part: unknown
  /** The request that the service must receive each time. */
  readonly receives: { readonly method: string; readonly path: string; readonly body: unknown }
}

const ORDERS = {
  recorded: SLUICE,
  dialect: "draft-8",
  answer: { orders: [7] },
  part: { orders: [7] },
  receives: { method: "GET", path: "/orders", body: "" },
} as const
const SAYING = { model: "gpt-5-mini", messages: [{ role: "user" as const, content: "Say it in one word." }] }

const rows: readonly Row[] = [
  {
    ...ORDERS,
    name: "ky",
    call: ({ kyClient }) => kyClient.put("https://api.example.com/orders", { json: { id: 7 } }).json(),
    receives: { method: "PUT", path: "/orders", body: '{"id":7}' },
  },
  {
    ...ORDERS,
    name: "axios",
    wraps: "cause",
    call: async ({ axiosClient }) =>
      (await axiosClient.post("https://api.example.com/orders", { id: 7 })).data,
    receives: { method: "POST", path: "/orders", body: '{"id":7}' },
  },
  {
    name: "OpenAI",
    recorded: OPENAI,
    dialect: "openai",
    wraps: "cause",
    call: async ({ openai }) => (await openai.chat.completions.create(SAYING)).choices[0]?.message.content,
    answer: { choices: [{ index: 0, message: { role: "assistant", content: "It." } }] },
    part: "It.",
    receives: { method: "POST", path: "/v1/chat/completions", body: JSON.stringify(SAYING) },
  },
  {
    name: "Octokit",
    recorded: GITHUB,
    dialect: "x-ratelimit",
    wraps: "cause",
    call: async ({ octokit }) => (await octokit.rest.issues.create(ISSUE)).data.number,
    answer: { number: 12 },
    part: 12,
    receives: { method: "POST", path: "/repos/ada/engine/issues", body: '{"title":"Stuck"}' },
  },
  {
    name: "Stripe",
    recorded: STRIPE,
    dialect: undefined,
    wraps: "detail",
    call: async ({ stripe }) => (await stripe.customers.create({ email: "ada@example.com" })).id,
    answer: { id: "cus_1", object: "customer" },
    part: "cus_1",
    receives: { method: "POST", path: "/v1/customers", body: "email=ada%40example.com" },
  },
]
const ISSUE = { owner: "ada", repo: "engine", title: "Stuck" }

beforeAll(() => {
  vi.stubEnv("OPENAI_API_KEY", "sk-test")
  vi.stubEnv("STRIPE_KEY", "sk_test_1")
  // Octokit logs each refusal.
  vi.spyOn(console, "error").mockReturnValue()
})
afterAll(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

/** Returns a fetch that sends each request to a server on this machine, whatever the URL's host is. */
function to(server: string): typeof fetch {
  return (input, init) => {
    const { pathname, search } = new URL(input instanceof Request ? input.url : input)
    const target = `${server}${pathname}${search}`
    return fetch(input instanceof Request ? new Request(target, input) : target, init)
  }
}

interface Service {
  readonly api: PacedFetch
  /** The requests that the service has received. */
  readonly received: Row["receives"][]
  /** The statuses that the service has sent. */
  readonly sent: number[]
}

/** Functions that stop the servers of the tests. The tests run at the same time, because they mostly wait. */
const ends: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const end of ends.splice(0)) await end()
})

/**
 * Starts a service that refuses its first calls, and creates a paced fetch that sends each call at most twice. If
 * `waitMs` is given, it replaces the recorded wait in refusals.
 */
async function start({ recorded, answer }: Row, refusals: number, waitMs?: string): Promise<Service> {
  const [received, sent]: [Row["receives"][], number[]] = [[], []]
  let openAt = 0
  async function respond(request: IncomingMessage) {
    received.push({ method: request.method ?? "", path: request.url ?? "", body: await text(request) })
    if (sent.length >= refusals && performance.now() >= openAt)
      return { status: 200, headers: recorded.quota, body: answer }
    const refused = recorded.refusal()
    if (waitMs !== undefined) refused.headers["retry-after-ms"] = waitMs
    const ms = refused.headers["retry-after-ms"] ?? Number(refused.headers["retry-after"] ?? 0) * 1_000
    openAt = performance.now() + Number(ms)
    return refused
  }
  const server = await listen(async (request, response) => {
    const { status, headers, body } = await respond(request)
    sent.push(status)
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body))
  })
  const api = paced(to(server.url), { retries: 1 })
  ends.push(server.close)
  return { api, received, sent }
}

const make = async (api: PacedFetch): Promise<Made> =>
  (await runTypeScript(clients as Block, { api })) as unknown as Made

describe.concurrent.each(rows)("docs/client/calling.md: $name", (row) => {
  it("sends its calls with the paced fetch, which reads the headers", async () => {
    const { api, received } = await start(row, 0)
    expect(await row.call(await make(api))).toEqual(row.part)
    expect(received).toEqual([row.receives])
    const mode = row.dialect === undefined ? "open" : "paced"
    expect(api.status()).toMatchObject([{ mode, dialect: row.dialect, inFlight: 0 }])
  })

  it("waits for the time in a refusal, and then sends the same call again", async () => {
    const { api, received, sent } = await start(row, 1)
    const retried: boolean[] = []
    api.on("refused", ({ isRetried }) => void retried.push(isRetried))
    expect(await row.call(await make(api))).toEqual(row.part)
    // If the call had arrived too early, the service would have refused it.
    expect(sent).toEqual([row.recorded.refusal().status, 200])
    expect(received).toEqual([row.receives, row.receives])
    expect(retried).toEqual([true])
  })

  it("does not send a call again by itself when the paced fetch gives up", async () => {
    const { api, sent } = await start(row, Number.POSITIVE_INFINITY, "50")
    const { status } = row.recorded.refusal()
    const made = await make(api)
    const received = await row
      .call(made)
      .catch((error) => error.status ?? error.response?.status ?? error.statusCode)
    expect(received).toBe(status)
    expect(sent).toEqual([status, status])
  })

  it("rejects with the PaceError of a call that was not sent, or with an error that contains it", async () => {
    const { api, received } = await start(row, 0)
    api.close()
    const thrown: unknown = await row.call(await make(api)).catch((error) => error)
    const error = row.wraps === undefined ? thrown : (thrown as Record<string, unknown>)[row.wraps]
    expect(error).toBeInstanceOf(PaceError)
    expect(error).toMatchObject({ code: "SLUICE_PACE_CLOSED" })
    expect(received).toEqual([])
  })
})

describe.concurrent("docs/client/calling.md: a server of Sluice", () => {
  it.each(rows.slice(0, 2))(
    "refuses at most one call of $name after another client has used up the limit",
    async ({ call }) => {
      const server = await startLimitedApi({ limit: 4, window: "1 second", algorithm: "sliding-log" })
      const api = paced(to(server.url))
      ends.push(server.close)
      const made = await make(api)
      await Promise.all([1, 2, 3, 4].map(() => fetch(server.url)))
      const answers = await Promise.all([1, 2, 3, 4].map(() => call(made)))
      expect(answers).toEqual(answers.map(() => ({ ok: true })))
      expect(server.admitted).toBe(8)
      expect(server.refused).toBeLessThanOrEqual(1)
    },
  )
})

describe("docs/client/calling.md", () => {
  const guide = readFileSync(`${ROOT}docs/client/calling.md`, "utf8")
  const source = (file: string): string => readFileSync(`${ROOT}packages/client/src/${file}`, "utf8")

  it("contains a row for each error code", () => {
    const codes = source("pace-error.ts").match(/(?<=\| ")SLUICE_\w+/g) ?? []
    expect(codes.length).toBeGreaterThan(3)
    const rows = guide.match(/(?<=^\| `)SLUICE_\w+/gm)
    expect(rows?.sort()).toEqual(codes.sort())
  })

  it("names each event", () => {
    const events = [...source("events.ts").matchAll(/^ {2}readonly (\w+): (?:GateStatus|\{)$/gm)]
    expect(events.length).toBeGreaterThan(2)
    for (const [, name] of events) expect(guide).toContain(`"${name}"`)
  })
})
