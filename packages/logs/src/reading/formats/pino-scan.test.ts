import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { pinoLine } from "./pino-line.ts"
import { scanPinoLine } from "./pino-scan.ts"
import { readPinoLine } from "./read-pino-line.ts"

const scalar = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant(null),
  fc.string(),
  fc.constantFrom(
    "GET",
    "/a",
    "incoming request",
    "192.0.2.1",
    "2025-06-03T08:00:00Z",
    1_748_937_600_000,
    404,
  ),
)
const NAMES = [
  "level",
  "time",
  "pid",
  "hostname",
  "reqId",
  "msg",
  "responseTime",
  "method",
  "url",
  "remoteAddress",
]
const INNER = ["req", "res", "ratelimit", "statusCode", "policy", "allowed"]
const name = fc.oneof(fc.constantFrom(...NAMES, ...INNER), fc.string({ maxLength: 5 }))
const inner = fc.array(fc.tuple(name, scalar), { maxLength: 4 })
const value = fc.oneof(
  { weight: 3, arbitrary: scalar.map((each) => JSON.stringify(each)) },
  { weight: 2, arbitrary: inner.map(objectText) },
  { weight: 1, arbitrary: fc.json({ maxDepth: 2 }) },
)
/** Lines with any members in any order. Members may be repeated. */
const line = fc
  .array(fc.tuple(name, value), { maxLength: 8 })
  .map((members) => `{${members.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(",")}}`)

function objectText(members: readonly (readonly [string, unknown])[]): string {
  return `{${members.map(([key, each]) => `${JSON.stringify(key)}:${JSON.stringify(each)}`).join(",")}}`
}

describe("scanPinoLine", () => {
  it("reads the same members as JSON.parse, or refuses the line", () => {
    let scanned = 0
    fc.assert(
      fc.property(line, (text) => {
        const fast = pinoLine()
        if (!scanPinoLine(text, fast)) return
        scanned++
        const slow = pinoLine()
        expect(readPinoLine(text, slow, true)).toBe(true)
        expect(fast).toEqual({ ...slow, object: undefined })
      }),
      { numRuns: 5_000 },
    )
    expect(scanned).toBeGreaterThan(100)
  })

  it("accepts nothing that is not JSON", () => {
    const valid =
      '{"level":30,"time":1748937600123,"req":{"method":"GET","url":"/a"},"responseTime":1.5,"msg":"m"}'
    const damage = fc.tuple(
      fc.nat(valid.length),
      fc.nat(3),
      fc.string({ unit: fc.constantFrom(...'{}",:0-.x'), maxLength: 2 }),
    )
    fc.assert(
      fc.property(damage, ([at, removed, added]) => {
        const text = valid.slice(0, at) + added + valid.slice(at + removed)
        if (scanPinoLine(text, pinoLine())) expect(() => JSON.parse(text)).not.toThrow()
      }),
      { numRuns: 5_000 },
    )
  })

  it("scans the lines of Fastify and of pino-http without headers", () => {
    const lines = [
      '{"level":30,"time":1748937600123,"pid":1,"hostname":"h","reqId":"req-1","req":{"method":"GET","url":"/a","host":"localhost","remoteAddress":"::1","remotePort":5},"msg":"incoming request"}',
      '{"level":30,"time":1748937600124,"pid":1,"hostname":"h","reqId":"req-1","res":{"statusCode":200},"responseTime":1.25,"ratelimit":{"policy":"per-ip","allowed":false,"remaining":0,"limit":5},"msg":"request completed"}',
    ]
    for (const text of lines) expect(scanPinoLine(text, pinoLine())).toBe(true)
  })
})
