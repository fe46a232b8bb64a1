import { connect } from "node:http2"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type EnvoyAsking, openEnvoy } from "./envoy-asking.ts"
import { type Started, startService, TWO_SERVICES } from "./started.ts"

let started: Started
let envoy: EnvoyAsking
beforeAll(async () => {
  started = await startService(TWO_SERVICES, {
    bounds: { maxMessageBytes: 200_000, maxInFlight: 1_000, maxRequests: 10_000, arrivalMs: 10_000 },
  })
  envoy = openEnvoy(started.grpc)
})
afterAll(async () => {
  envoy.close()
  await started.stop()
  expect(started.faults).toEqual([])
})

const entry = { key: "user_id", value: "ada" }
const many = (count: number, one: object) => Array.from({ length: count }, () => one)
const failure = async (request: object): Promise<string> => {
  const called = await envoy.call(request)
  return "error" in called ? `${called.error.code} ${called.error.details}` : "answered"
}

describe("an invalid request", () => {
  it.each([
    [
      "without a domain",
      { descriptors: [{ entries: [entry] }] },
      "3 domain: is missing; set it to the name of the service",
    ],
    [
      "with a domain that is too long",
      { domain: "x".repeat(257), descriptors: [{ entries: [entry] }] },
      "3 domain: has 257 characters; at most 256 are accepted",
    ],
    ["without descriptors", { domain: "1" }, "3 descriptors: is empty; give at least one"],
    [
      "with a key that is too long",
      { domain: "1", descriptors: [{ entries: [entry, { key: "k".repeat(257), value: "v" }] }] },
      "3 descriptors[0].entries[1].key: has 257 characters; at most 256 are accepted",
    ],
    [
      "that refunds units",
      { domain: "1", descriptors: [{ entries: [entry], hits_addend: { value: 1 }, is_negative_hits: true }] },
      "12 descriptors[0].is_negative_hits: is true, but refunds are not supported; leave it out.",
    ],
  ])("%s is refused with the reason", async (_what, request, told) => {
    expect(await failure(request)).toBe(told)
  })

  it("takes nothing", async () => {
    const wrong = { entries: [entry], hits_addend: { value: 1 }, is_negative_hits: true }
    for (let time = 0; time < 10; time++)
      await failure({ domain: "1", descriptors: [{ entries: [entry] }, wrong] })
    expect((await envoy.ask("1", [{ user_id: "ada" }])).statuses[0]).toContain("4 left")
  })

  it("does not include a request that is exactly at a bound", async () => {
    const descriptors = many(64, { entries: many(32, { key: "k".repeat(256), value: "v" }) })
    expect(await failure({ domain: "x".repeat(256), descriptors: descriptors.slice(0, 20) })).toBe("answered")
    expect(
      await failure({ domain: "1", descriptors: many(64, { entries: many(32, { key: "k", value: "v" }) }) }),
    ).toBe("answered")
    expect(await failure({ domain: "1", descriptors: [{ entries: [] }, {}] })).toBe("answered")
  })
})

describe("a malformed message", () => {
  /** Resolves with the gRPC status of a frame with this payload. */
  const statusOf = (payload: Buffer): Promise<string | undefined> =>
    new Promise((resolve, reject) => {
      const session = connect(`http://${started.grpc}`)
      session.on("error", reject)
      const stream = session.request({
        ":method": "POST",
        ":path": "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
        "content-type": "application/grpc+proto",
        te: "trailers",
      })
      let status: string | undefined
      const read = (headers: Readonly<Record<string, unknown>>): void => {
        if (headers["grpc-status"] !== undefined) status = String(headers["grpc-status"])
      }
      stream.on("response", read)
      stream.on("trailers", read)
      stream.on("error", reject)
      stream.resume()
      stream.on("close", () => {
        session.close()
        resolve(status)
      })
      const frame = Buffer.alloc(5)
      frame.writeUInt32BE(payload.length, 1)
      stream.end(Buffer.concat([frame, payload]))
    })

  it.each([
    ["bytes of an invalid field", Buffer.from("ffffffffffffffff", "hex")],
    ["a length beyond the end", Buffer.from("0a7f31", "hex")],
    ["text in the domain that is not UTF-8", Buffer.from("0a02c328", "hex")],
    ["a descriptor cut off", Buffer.from("0a013112050a030a", "hex")],
    ["nothing at all", Buffer.alloc(0)],
  ])("%s is INVALID_ARGUMENT", async (_what, payload) => {
    expect(await statusOf(payload)).toBe("3")
  })

  it("is accepted if a client-supplied value is not UTF-8, and counted by its readable part", async () => {
    // The bytes are domain "1" and a descriptor whose user_id is "a" and one more byte.
    for (const byte of ["ff", "fe"]) {
      const payload = Buffer.from(`0a0131120f0a0d0a07757365725f6964120261${byte}`, "hex")
      expect(await statusOf(payload)).toBe("0")
    }
    expect((await envoy.ask("1", [{ user_id: "a\ufffd" }])).statuses[0]).toContain("2 left")
  })

  it("is not assumed for a message with unknown fields", async () => {
    // The bytes are domain "1", a descriptor with user_id "eve" and an unknown field 15, and an unknown request field
    // 14.
    const payload = Buffer.from("0a013112130a0e0a07757365725f69641203657665780a7201ff", "hex")
    expect(await statusOf(payload)).toBe("0")
  })
})

describe("the HTTP endpoint", () => {
  it("gives the same answers as gRPC, in JSON", async () => {
    const response = await fetch(
      `${started.http}/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit`,
      {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          domain: "1",
          descriptors: [{ entries: [{ key: "user_id", value: "carl" }] }],
        }),
      },
    )
    expect(await response.json()).toMatchObject({
      overallCode: "OK",
      statuses: [
        {
          code: "OK",
          currentLimit: { requestsPerUnit: 5, unit: "MINUTE", name: "per-user" },
          limitRemaining: 4,
        },
      ],
    })
  })
})
