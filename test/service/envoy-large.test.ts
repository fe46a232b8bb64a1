import { connect } from "node:http2"
import { expect, it, onTestFinished } from "vitest"
import { type EnvoyAsking, openEnvoy } from "./envoy-asking.ts"
import { answerTo, beginCall, framed } from "./raw-call.ts"
import { openService, type Started, TWO_SERVICES, WAITING } from "./started.ts"

// Envoy forwards a request after an error, so nothing that a client sends may cause an error.

/** The default bounds of the program, but with little memory for messages. */
const BOUNDS = { maxMessageBytes: 131_072, maxInFlight: 1_000, maxRequests: 10_000, arrivalMs: 10_000 }
const entry = { key: "user_id", value: "ada" }
const many = (count: number, one: object) => Array.from({ length: count }, () => one)
const one = (value: string) => ({ entries: [{ key: "user_id", value }] })

const start = (rules: string, parts: object = {}): Promise<Started> =>
  openService(rules, { bounds: BOUNDS, ...parts })

async function open(rules: string, parts: object = {}): Promise<EnvoyAsking> {
  const envoy = openEnvoy((await start(rules, parts)).grpc)
  onTestFinished(() => envoy.close())
  return envoy
}

/** Resolves with the code in the response, or with the gRPC status of the error. */
async function codeOf(envoy: EnvoyAsking, request: object): Promise<unknown> {
  const called = await envoy.call(request)
  return "error" in called ? called.error.code : called.value.overall_code
}

const READERS = [
  ["by the service's own reader", true],
  ["by grpc-js", false],
] as const

it.each(READERS)(
  "long values in several descriptors, read %s, are counted like short values",
  async (_name, plainCalls) => {
    const envoy = await open(TWO_SERVICES, { plainCalls })
    const long = "x".repeat(45_000)
    const request = { domain: "1", descriptors: [one(`${long}1`), one(`${long}2`), one(`${long}3`)] }
    for (let time = 0; time < 5; time++) expect(await codeOf(envoy, request)).toBe("OK")
    expect(await codeOf(envoy, request)).toBe("OVER_LIMIT")
    expect((await envoy.ask("1", [{ user_id: `${long}4` }])).statuses[0]).toContain("4 left")
  },
)

it.each(READERS)("a request above 4 MiB, read %s, is over the limit", async (_name, plainCalls) => {
  const envoy = await open(TWO_SERVICES, { plainCalls })
  for (const bytes of [4_194_304, 9_000_000]) {
    const { overall, body, headers, metadata } = await envoy.ask("1", [{ user_id: "x".repeat(bytes) }])
    expect({ overall, metadata }).toEqual({ overall: "OVER_LIMIT", metadata: { too_large: true } })
    expect(headers).toEqual({ "Content-Type": "text/plain; charset=utf-8" })
    expect(body).toBe("The request is too large to be checked against its limits.\n")
  }
  expect((await envoy.ask("1", [{ user_id: "ada" }])).statuses[0]).toContain("4 left")
})

it.each([
  ["65 descriptors", { descriptors: many(65, { entries: [entry] }) }],
  ["33 entries", { descriptors: [{ entries: [entry] }, { entries: many(33, entry) }] }],
  ["500,000 descriptors", { descriptors: many(500_000, {}) }],
  ["200,000 entries", { descriptors: [{ entries: many(200_000, {}) }] }],
])("a request with %s is over the limit", async (_name, request) => {
  const envoy = await open(TWO_SERVICES)
  expect(await codeOf(envoy, { domain: "1", ...request })).toBe("OVER_LIMIT")
  expect((await envoy.ask("1", [{ user_id: "ada" }])).statuses[0]).toContain("4 left")
})

it("a message whose descriptor contains a limit of two million fields is answered in a short turn", async () => {
  const { grpc } = await start(TWO_SERVICES)
  const nested = (tag: number, bytes: Buffer) => {
    const length = Buffer.from(
      [0, 7, 14, 21].map((shift) => ((bytes.length >> shift) & 127) | (shift < 21 ? 128 : 0)),
    )
    return Buffer.concat([Buffer.from([tag]), length, bytes])
  }
  const limit = nested(0x12, Buffer.alloc(4_000_000, Buffer.from([0x78, 1])))
  const session = connect(`http://${grpc}`)
  const stream = beginCall(session, "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit")
  const before = process.cpuUsage()
  stream.end(framed(Buffer.concat([Buffer.from([0x0a, 1, 0x31]), nested(0x12, limit)])))
  const { status } = await answerTo(stream)
  const { user, system } = process.cpuUsage(before)
  session.close()
  expect(status).toBe(0)
  // The member is not in the contract, so its two million fields are skipped as one field.
  expect(user + system).toBeLessThan(1_000_000)
})

it.each([
  ["an empty value", { entries: [{ key: "user_id", value: "" }] }],
  ["an empty key", { entries: [{ key: "", value: "v" }, entry] }],
  ["one key 32 times", { entries: many(32, entry) }],
  ["no entries", { entries: [] }],
  ["a key of an object's prototype", { entries: [{ key: "__proto__", value: "v" }] }],
  ["control characters", one("\u0000\r\n\u007f")],
  ["a path that is not one", { entries: [{ key: "path", value: "%%%/../\\?#".repeat(5_000) }, entry] }],
  ["the most hits", { entries: [entry], hits_addend: { value: "18446744073709551615" } }],
])("a descriptor with %s is answered without an error", async (_name, descriptor) => {
  const envoy = await open(TWO_SERVICES)
  expect(await codeOf(envoy, { domain: "1", descriptors: [descriptor] })).toMatch(/^(OK|OVER_LIMIT)$/)
})

it.each(READERS)(
  "a long request for which no memory is free, read %s, is over the limit",
  async (_name, plainCalls) => {
    const envoy = await open(TWO_SERVICES, { plainCalls, bounds: { ...BOUNDS, maxUnfinishedBytes: 2 ** 20 } })
    // A connection may use a quarter of the memory for arriving requests.
    expect(await codeOf(envoy, { domain: "1", descriptors: [one("x".repeat(300_000))] })).toBe("OVER_LIMIT")
    expect(await codeOf(envoy, { domain: "1", descriptors: [one("ada")] })).toBe("OK")
  },
)

it("a request that finds the queue of its rule full is over the limit", async () => {
  const envoy = await open(WAITING, { bounds: { ...BOUNDS, maxInFlight: 8 } })
  const request = { domain: "2", descriptors: [{ entries: [{ key: "user", value: "ada" }] }] }
  expect(await codeOf(envoy, request)).toBe("OK")
  const refused: string[] = []
  const held = Array.from({ length: 7 }, async () => {
    const called = await envoy.call(request)
    if ("value" in called) refused.push(String(called.value.overall_code))
    return called
  })
  // The other requests wait for a day.
  await Promise.race(held)
  const { metadata, headers } = await envoy.ask("2", [{ user: "ada" }])
  expect(metadata).toEqual({ too_many_held: true })
  expect(Number(headers["Retry-After"])).toBeGreaterThanOrEqual(1)
  expect(new Set(refused)).toEqual(new Set(["OVER_LIMIT"]))
})
