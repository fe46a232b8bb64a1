import { once } from "node:events"
import { type IncomingMessage, request } from "node:http"
import { text } from "node:stream/consumers"
import { rulesInMemory, tokens } from "@sluice/service"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { answerTo, beginCall, callOnce, framed, openRaw } from "./raw-call.ts"
import { type Started, startService } from "./started.ts"

// Attacks the event loop with bodies that take far longer to read than to send.

const MIB = 2 ** 20
/**
 * Maximum CPU time of one turn, which includes the work of this client. Without bounds, bodies take from 200 to
 * 20,000 ms. In CI, coverage counting makes the scan of a body several times slower.
 */
const MOST_CPU_MS = process.env.CI === "true" ? 300 : 100
const SERVICE = "/sluice.v1.RateLimiter"
const MANY = `${SERVICE}/ShouldForwardRequests`
const SINGLE = `${SERVICE}/ShouldForwardRequest`
const REGISTER = `${SERVICE}/RegisterService`
const ENVOY = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"

let started: Started
beforeAll(async () => {
  const home = rulesInMemory()
  await home.registry.register("shop", [{ name: "units", field: "user", limit: 1_000_000, window: "1 day" }])
  started = await startService(home, {
    bounds: { maxMessageBytes: 131_072, maxInFlight: 1_000, maxRequests: 10_000, arrivalMs: 10_000 },
  })
})
afterAll(async () => {
  await started.stop()
  expect(started.faults).toEqual([])
})

/** Returns a list that repeats one item, with separators, up to about this many bytes. */
function repeated(item: string, bytes: number, separator = ","): string {
  const each = item + separator
  return each.repeat(Math.floor(bytes / each.length)) + item
}

/** Returns a length-delimited field in the protobuf wire format. */
function field(number: number, content: Uint8Array): Buffer {
  const head = [number * 8 + 2]
  let { length } = content
  for (; length > 127; length >>>= 7) head.push((length & 127) | 128)
  return Buffer.concat([Buffer.from([...head, length]), content])
}

const members = (bytes: number): string =>
  Array.from({ length: Math.floor(bytes / 20) }, (_, index) => `"${index}a":${index}`).join()
const LARGE = 4 * MIB - 1_000
const SMALL = 120_000
const PIECE = 65_536
const digits = "1".repeat(LARGE)

const JSON_BODIES: readonly (readonly [what: string, path: string, body: string])[] = [
  ["empty objects as requests", MANY, `{"requests":[${repeated("{}", LARGE)}]}`],
  ["empty arrays in one request", MANY, `{"requests":[{"request":{"a":[${repeated("[]", LARGE)}]}}]}`],
  ["many members in one request", MANY, `{"requests":[{"request":{${members(LARGE)}}}]}`],
  ["many members beside the requests", MANY, `{${members(LARGE)},"requests":[]}`],
  ["a number of 4 million digits as id", MANY, `{"requests":[{"serviceId":${digits}}]}`],
  ["a cost of 4 million digits", MANY, `{"requests":[{"service":"shop","cost":"${digits}"}]}`],
  ["4 million digits beside the requests", MANY, `{"brief":${digits},"requests":[]}`],
  ["a long name beside the requests", MANY, `{"${"a".repeat(LARGE)}":1}`],
  ["brackets without an end", MANY, `{"requests":[${"[".repeat(LARGE)}`],
  ["the list under an escaped name", MANY, `{"r\\u0065quests":[${repeated("{}", LARGE)}]}`],
  ["a cost of many digits in a single call", SINGLE, `{"service":"shop","cost":${"1".repeat(SMALL)}}`],
  ["empty objects in a single call", SINGLE, `{"service":"shop","request":{"a":[${repeated("{}", SMALL)}]}}`],
  ["empty objects as rules", REGISTER, `{"service":"a","rules":[${repeated("{}", LARGE)}]}`],
  ["a version of 4 million digits", REGISTER, `{"service":"a","version":${digits}}`],
]

const EMPTY = Buffer.alloc(0)
const fields = (number: number, bytes: number): Buffer =>
  Buffer.alloc(Math.floor(bytes / 2) * 2, field(number, EMPTY))
/** A group with the field number 15 that contains many fields. */
const group = Buffer.concat([Buffer.from([0x7b]), fields(14, LARGE), Buffer.from([0x7c])])
const MESSAGES: readonly (readonly [what: string, path: string, message: Buffer])[] = [
  ["empty messages as requests", MANY, fields(1, LARGE)],
  ["unknown fields beside the requests", MANY, fields(15, LARGE)],
  ["a group beside the requests", MANY, group],
  ["unknown fields in one request", MANY, field(1, fields(15, LARGE))],
  ["a group in one request", MANY, field(1, group)],
  ["empty rules", REGISTER, fields(3, LARGE)],
  ["empty strings in one rule", REGISTER, field(2, Buffer.alloc(LARGE, Buffer.from([0xa2, 0x01, 0])))],
  ["empty descriptors", ENVOY, fields(2, LARGE)],
  ["a group beside the descriptors", ENVOY, group],
  ["unknown fields in one descriptor", ENVOY, field(2, fields(15, LARGE))],
  ["empty objects in the text of a request", SINGLE, askedFor(repeated("{}", 64_000))],
]

function askedFor(items: string): Buffer {
  return Buffer.concat([field(2, Buffer.from(`{"a":[${items}]}`)), field(3, Buffer.from("shop"))])
}

/** Resolves with the CPU time, in milliseconds, of the longest turn of the event loop while `work` is pending. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let isOver = false
  let most = 0
  let before = process.cpuUsage()
  const watch = (): void => {
    const { user, system } = process.cpuUsage(before)
    most = Math.max(most, (user + system) / 1_000)
    before = process.cpuUsage()
    if (!isOver) setImmediate(watch)
  }
  setImmediate(watch)
  await work()
  isOver = true
  return most
}

/**
 * Checks that no turn of the work takes long. The compiler and the garbage collector may lengthen a turn of one run,
 * but not of three runs.
 */
async function expectShortTurns(work: () => Promise<unknown>): Promise<void> {
  let longest = Number.POSITIVE_INFINITY
  for (let run = 0; run < 3 && longest >= MOST_CPU_MS; run++) longest = await longestTurn(work)
  expect(longest).toBeLessThan(MOST_CPU_MS)
}

function post(path: string, type: string, body: Buffer): Promise<Response> {
  return fetch(started.http + path, { method: "POST", headers: { "content-type": type }, body })
}

/**
 * Sends a body piece by piece, because sending the whole body would also take a long turn. Resolves with the
 * response.
 */
async function pour(path: string, type: string, body: Buffer): Promise<{ status: number; answer: string }> {
  const headers = { "content-type": type, "content-length": body.length }
  const asking = request(started.http + path, { method: "POST", headers })
  const response = once(asking, "response") as Promise<[IncomingMessage]>
  for (let at = 0; at < body.length; at += PIECE) {
    if (!asking.write(body.subarray(at, at + PIECE))) await once(asking, "drain")
  }
  asking.end()
  const [answered] = await response
  return { status: answered.statusCode as number, answer: await text(answered) }
}

describe("an expensive body", () => {
  it.each(JSON_BODIES)(
    "over HTTP as JSON is refused in short turns, and not repeated in the response: %s",
    async (_what, path, json) => {
      const body = Buffer.from(json)
      let status = 0
      let answer = ""
      await expectShortTurns(async () => {
        ;({ status, answer } = await pour(path, "application/json", body))
      })
      // In a batch, only the expensive request receives an error, so that the other requests are decided.
      if (status === 200) expect(JSON.parse(answer).responses[0].error.code).toBe(3)
      else expect({ status, answer: answer.slice(0, 300) }).toMatchObject({ status: 400 })
      expect(answer.length).toBeLessThan(4_000)
    },
  )

  // Only gRPC accepts long messages from Envoy.
  it.each(MESSAGES.filter(([, path]) => path !== ENVOY))(
    "over HTTP as bytes is refused in short turns: %s",
    async (_what, path, message) => {
      let answer = ""
      await expectShortTurns(async () => {
        ;({ answer } = await pour(path, "application/proto", message))
      })
      expect(answer.length).toBeLessThan(4_000)
    },
  )

  it.each(MESSAGES)("over gRPC is refused in short turns: %s", async (_what, path, message) => {
    const bytes = framed(message)
    await expectShortTurns(async () => {
      const session = openRaw(started.grpc)
      const stream = beginCall(session, path)
      const answer = answerTo(stream)
      for (let at = 0; at < bytes.length && !stream.closed; at += PIECE) {
        if (!stream.write(bytes.subarray(at, at + PIECE))) await Promise.race([once(stream, "drain"), answer])
      }
      stream.end()
      expect((await answer).status).not.toBeNaN()
      session.destroy()
    })
  })
})

describe("a batch with a request that is expensive to read", () => {
  const large = `{"a":[${repeated("{}", 60_000)}]}`
  it.each([
    ["as an object", `{"service":"shop","request":${large}}`],
    ["as a string", JSON.stringify({ service: "shop", request: large })],
    ["with a long string", JSON.stringify({ service: "shop", request: "a".repeat(MIB) })],
  ])("still decides its other requests: %s", async (_how, expensive) => {
    const ada = '{"service":"shop","request":{"user":"ada"}}'
    const body = Buffer.from(`{"requests":[${[ada, expensive, ada, expensive, ada].join(" , ")}]}`)
    const response = await post(MANY, "application/json", body)
    const { responses } = (await response.json()) as {
      responses: { shouldForward: boolean; error?: object }[]
    }
    expect(responses.map(({ shouldForward, error }) => [shouldForward, error !== undefined])).toEqual(
      [true, false, true, false, true].map((isDecided) => [isDecided, !isDecided]),
    )
  })
})

describe("a batch in JSON", () => {
  const ada = '{"service":"shop","request":{"user":"a,]}\\"\\\\d"}}'
  it.each([
    ["spaces and escapes", `{ "brief" : true , "requests" : [ ${ada} ,\n${ada} ] }`, 2],
    ["nothing", "{}", 0],
    ["an empty list", '{"requests":[ ]}', 0],
    ["null as the list", '{"requests":null}', 0],
    [
      "300 requests",
      `{"requests":[${repeated(ada, 300 * (ada.length + 1) - ada.length)}],"brief":true}`,
      300,
    ],
  ])("with %s is read completely", async (_what, body, count) => {
    const response = await post(MANY, "application/json", Buffer.from(body))
    const { responses } = (await response.json()) as { responses: { shouldForward: boolean }[] }
    expect(responses.filter(({ shouldForward }) => shouldForward)).toHaveLength(count)
  })

  it.each([
    ["a trailing comma", `{"requests":[${ada},]}`],
    ["a missing request", `{"requests":[${ada},,${ada}]}`],
    ["a wrong bracket", `{"requests":[${ada}}}`],
    ["no end", `{"requests":[${ada}`],
    ["text after its end", `{"requests":[${ada}]} x`],
    ["another list after its end", `{"requests":[${ada}]}[]`],
    ["two lists", `{"requests":[${ada}],"requests":[${ada}]}`],
    ["a list of lists", `{"requests":[[${ada}]]}`],
    ["an object as the list", `{"requests":{"0":${ada}}}`],
    ["an array as the body", `[{"requests":[${ada}]}]`],
    ["an unknown member", `{"requests":[${ada}],"quiet":true}`],
    ["128 requests and a comma", `{"requests":[${`${ada},`.repeat(128)}]}`],
  ])("with %s is refused and takes no units", async (_what, body) => {
    const remaining = async (): Promise<string> => {
      const asked = '{"service":"shop","request":{"user":"a,]}\\"\\\\d"},"peek":true}'
      const response = await post(SINGLE, "application/json", Buffer.from(asked))
      return ((await response.json()) as { remaining: string }).remaining
    }
    const before = await remaining()
    const response = await post(MANY, "application/json", Buffer.from(body))
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: "invalid_argument" })
    expect(await remaining()).toBe(before)
  })
})

describe("a call without a valid token", () => {
  const wrong: string[] = []
  let guarded: Started
  beforeAll(async () => {
    guarded = await startService(rulesInMemory(), {
      decideTokens: tokens({ shop: "of-the-shop" }),
      tokens: tokens({ shop: "of-the-rules" }),
      isRegistrationOpen: false,
      onWrongToken: (path) => void wrong.push(path),
    })
  })
  afterAll(() => guarded.stop())

  const GET = `${SERVICE}/GetService`
  const paths = [SINGLE, MANY, REGISTER, GET, `${SERVICE}/ShowClient`, ENVOY]

  it.each(paths)("over HTTP is refused before its body is read: %s", async (path) => {
    wrong.length = 0
    const ask = async (authorization: string): Promise<number> => {
      const headers = { "content-type": "application/json", authorization }
      const response = await fetch(guarded.http + path, { method: "POST", headers, body: "not JSON" })
      await response.text()
      return response.status
    }
    expect([await ask(""), await ask("Bearer wrong"), await ask("Bearer of-the-shop")]).toEqual(
      path === SINGLE || path === MANY || path === ENVOY ? [401, 403, 400] : [401, 403, 403],
    )
    expect(new Set(wrong)).toEqual(new Set([path]))
  })

  it.each(paths)("over gRPC is refused before its body is read: %s", async (path) => {
    const ask = async (headers: Record<string, string>): Promise<number> => {
      return (await callOnce(guarded.grpc, path, Buffer.from([0xff, 0xff]), headers)).status
    }
    expect([await ask({}), await ask({ authorization: "Bearer wrong" })]).toEqual([16, 7])
  })
})
