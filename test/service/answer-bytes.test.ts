import { create, toBinary } from "@bufbuild/protobuf"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { StatusSchema } from "../../packages/service/src/gen/google/rpc/status_pb.ts"
import {
  ShouldForwardRequestResponseSchema,
  ShouldForwardRequestsResponseSchema,
} from "../../packages/service/src/gen/sluice/v1/rate_limiter_pb.ts"
import { answerBytes, answersBytes } from "../../packages/service/src/wire/answer-bytes.ts"

const LARGEST = BigInt(Number.MAX_SAFE_INTEGER)
/** The largest and smallest values for each length of a varint. */
const edges = Array.from({ length: 8 }, (_, index) => 1n << BigInt(7 * (index + 1))).filter(
  (edge) => edge <= LARGEST,
)
const whole = fc.oneof(
  fc.bigInt({ min: 0n, max: LARGEST }),
  fc.constantFrom(0n, 1n, LARGEST, 2n ** 31n, 2n ** 32n, ...edges, ...edges.map((edge) => edge - 1n)),
)
const text = fc.oneof(
  fc.constantFrom("", "\ud800", "half of a pair: \udc00!"),
  fc.string({ unit: "grapheme-ascii", maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 200 }),
  // Strings near the lengths at which the length prefix grows by a byte, with characters of one to three bytes.
  fc
    .tuple(
      fc.constantFrom(42, 43, 63, 64, 126, 127, 128, 5461, 8192, 16_383, 16_384),
      fc.constantFrom("a", "é", "語"),
    )
    .map(([length, character]) => character.repeat(length)),
)
const answer = fc.record({
  shouldForward: fc.boolean(),
  rejectionMessage: text,
  retryAfterMs: fc.option(whole, { nil: undefined }),
  limit: whole,
  remaining: whole,
  policy: text,
  headers: fc.dictionary(text, text, { maxKeys: 6 }),
  degraded: fc.boolean(),
  delayMs: whole,
  resetAfterMs: whole,
  overLimit: fc.boolean(),
  shadowed: fc.array(text, { maxLength: 3 }),
  statusCode: fc.constantFrom(0, 127, 128, 429, 599),
  body: text,
  error: fc.option(fc.record({ code: fc.integer(), message: text }), { nil: undefined }),
  reservation: text,
  renewWithinMs: fc.option(whole, { nil: undefined }),
})
const made = answer.map(({ retryAfterMs, error, renewWithinMs, ...others }) =>
  create(ShouldForwardRequestResponseSchema, {
    ...others,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(renewWithinMs !== undefined && { renewWithinMs }),
    ...(error !== undefined && { error: create(StatusSchema, error) }),
  }),
)

const refused = create(ShouldForwardRequestResponseSchema, { policy: "user", statusCode: 429 })

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")

describe("the encoded bytes of a response", () => {
  it("cover every field of the message", () => {
    expect(
      ShouldForwardRequestResponseSchema.fields.map(({ number }) => number).toSorted((a, b) => a - b),
    ).toEqual(Array.from({ length: 17 }, (_, index) => index + 1))
    expect(ShouldForwardRequestsResponseSchema.fields.map(({ number }) => number)).toEqual([1])
  })

  it("match the bytes that the library encodes", () => {
    fc.assert(
      fc.property(made, (message) => {
        expect(hex(answerBytes(message))).toBe(hex(toBinary(ShouldForwardRequestResponseSchema, message)))
      }),
      { numRuns: 2_000 },
    )
  })

  it("match the bytes of the library for several responses", () => {
    fc.assert(
      fc.property(fc.array(made, { maxLength: 8 }), (responses) => {
        const message = create(ShouldForwardRequestsResponseSchema, { responses })
        expect(hex(answersBytes(responses))).toBe(hex(toBinary(ShouldForwardRequestsResponseSchema, message)))
      }),
      { numRuns: 500 },
    )
  })

  it("do not change when the next response is encoded", () => {
    const first = create(ShouldForwardRequestResponseSchema, { shouldForward: true, policy: "one" })
    const bytes = answerBytes(first)
    answerBytes(create(ShouldForwardRequestResponseSchema, { policy: "another" }))
    expect(hex(bytes)).toBe(hex(toBinary(ShouldForwardRequestResponseSchema, first)))
  })

  it.each([
    ["an answer", answerBytes],
    ["several answers", (one: typeof refused) => answersBytes([one])],
  ])("contain no part of an earlier message with %s that could not be encoded", (_what, write) => {
    const broken = { ...create(ShouldForwardRequestResponseSchema, { shouldForward: true }), body: undefined }
    expect(() => write(broken as unknown as typeof refused)).toThrow(TypeError)
    expect(hex(answerBytes(refused))).toBe(hex(toBinary(ShouldForwardRequestResponseSchema, refused)))
    expect(() => write(broken as unknown as typeof refused)).toThrow(TypeError)
    const many = create(ShouldForwardRequestsResponseSchema, { responses: [refused] })
    expect(hex(answersBytes([refused]))).toBe(hex(toBinary(ShouldForwardRequestsResponseSchema, many)))
  })
})
