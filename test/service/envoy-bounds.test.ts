import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type EnvoyAsking, openEnvoy } from "./envoy-asking.ts"
import { post } from "./post.ts"
import { callOnce } from "./raw-call.ts"
import { TWO_SERVICES, useService } from "./started.ts"

const SHOULD_RATE_LIMIT = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
const started = useService(TWO_SERVICES, {
  bounds: { maxMessageBytes: 200_000, maxInFlight: 1_000, maxRequests: 10_000, arrivalMs: 10_000 },
})
let envoy: EnvoyAsking
beforeAll(() => {
  envoy = openEnvoy(started.grpc)
})
afterAll(() => envoy.close())

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
  ])("%s is refused, and the error states the reason", async (_what, request, told) => {
    expect(await failure(request)).toBe(told)
  })

  it("takes no units", async () => {
    const wrong = { entries: [entry], hits_addend: { value: 1 }, is_negative_hits: true }
    for (let time = 0; time < 10; time++)
      await failure({ domain: "1", descriptors: [{ entries: [entry] }, wrong] })
    expect((await envoy.ask("1", [{ user_id: "ada" }])).statuses[0]).toContain("4 left")
  })

  it("exceeds a bound, while a request exactly at the bound is accepted", async () => {
    const descriptors = many(64, { entries: many(32, { key: "k".repeat(256), value: "v" }) })
    expect(await failure({ domain: "x".repeat(256), descriptors: descriptors.slice(0, 20) })).toBe("answered")
    expect(
      await failure({ domain: "1", descriptors: many(64, { entries: many(32, { key: "k", value: "v" }) }) }),
    ).toBe("answered")
    expect(await failure({ domain: "1", descriptors: [{ entries: [] }, {}] })).toBe("answered")
  })
})

describe("a malformed message", () => {
  const statusOf = async (payload: Buffer): Promise<number> =>
    (await callOnce(started.grpc, SHOULD_RATE_LIMIT, payload)).status

  it.each([
    ["bytes of an invalid field", Buffer.from("ffffffffffffffff", "hex")],
    ["a length beyond the end", Buffer.from("0a7f31", "hex")],
    ["text in the domain that is not UTF-8", Buffer.from("0a02c328", "hex")],
    ["a descriptor cut off", Buffer.from("0a013112050a030a", "hex")],
    ["nothing at all", Buffer.alloc(0)],
  ])("is refused with INVALID_ARGUMENT: %s", async (_what, payload) => {
    expect(await statusOf(payload)).toBe(3)
  })

  it("is accepted if only a value from the client is not UTF-8, and counted by its readable part", async () => {
    // The bytes are domain "1" and a descriptor whose user_id is "a" and one more byte.
    for (const byte of ["ff", "fe"]) {
      const payload = Buffer.from(`0a0131120f0a0d0a07757365725f6964120261${byte}`, "hex")
      expect(await statusOf(payload)).toBe(0)
    }
    expect((await envoy.ask("1", [{ user_id: "a\ufffd" }])).statuses[0]).toContain("2 left")
  })

  it("differs from a message with unknown fields, which is accepted", async () => {
    // The bytes are domain "1", a descriptor with user_id "eve" and an unknown field 15, and an unknown request field
    // 14.
    const payload = Buffer.from("0a013112130a0e0a07757365725f69641203657665780a7201ff", "hex")
    expect(await statusOf(payload)).toBe(0)
  })
})

describe("the HTTP endpoint", () => {
  it("returns the same responses as gRPC, in JSON", async () => {
    const descriptors = [{ entries: [{ key: "user_id", value: "carl" }] }]
    const { body } = await post(started, SHOULD_RATE_LIMIT, { domain: "1", descriptors })
    expect(body).toMatchObject({
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
