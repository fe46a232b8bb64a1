import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { OnMissing } from "../ground/policy.ts"
import {
  compilePartition,
  LONGEST_PARTITION,
  type Partition,
  partitionText,
  partitionValues,
  SKIP,
} from "./partition.ts"
import type { RequestFacts } from "./request.ts"

/** Returns a reader that reads a field from the request itself, which is a record of strings. */
const readerOf =
  (field: string) =>
  (_facts: RequestFacts, request: unknown): string | undefined =>
    (request as Record<string, string | undefined>)[field]

function partition(
  fields: readonly string[],
  onMissing: OnMissing,
  request: Record<string, string | undefined>,
): Partition {
  return compilePartition({ fields, onMissing }, readerOf)({}, request)
}

const HASHED = /^#[A-Za-z0-9_-]{22}$/

describe("the text of a partition", () => {
  it.each<[readonly string[], string]>([
    [[], ""],
    [[""], ""],
    [["192.0.2.7"], "192.0.2.7"],
    [["@ip:192.0.2.7"], "@@ip:192.0.2.7"],
    [["@shared"], "@@shared"],
    [["@"], "@@"],
    [["#x"], "##x"],
    [["a@#"], "a@#"],
    [["a", "b"], "@1:a1:b"],
    [["7", "1.2.3.4"], "@1:77:1.2.3.4"],
    [["a:b", "c"], "@3:a:b1:c"],
    [["a", "b:c"], "@1:a3:b:c"],
    [["", "a"], "@0:1:a"],
    [["@a", "#b"], "@2:@a2:#b"],
    [["é", "ü"], "@1:é1:ü"],
  ])("with the values %j is %j", (values, text) => {
    expect(partitionText(values)).toBe(text)
  })

  it.each([
    "@shared",
    "@ip:192.0.2.7",
    "#xdci6_VZaNZqi_WGyXPmsd",
    "@",
    "#",
    "@1:a4x",
    "@1:a-3:",
    "@1:ax",
    "@9:a",
    "@01:a1:b",
    "@1:a",
  ])("contains no values if it is %j", (text) => {
    expect(partitionValues(text)).toBeUndefined()
  })

  it("contains no values if it is empty, because the rule counts the whole service", () => {
    expect(partitionValues("")).toEqual([])
  })

  it("contains the values from which it was made, unless it is a hash", () => {
    const value = fc.oneof(fc.string(), fc.constantFrom("@1:a", "#", "@@", "@shared", "a:1", "😀"))
    const known = fc.oneof(fc.constant([]), fc.array(value, { minLength: 1, maxLength: 3 }))
    fc.assert(
      fc.property(known, (values) => {
        const text = partitionText(values)
        fc.pre(!HASHED.test(text) && (values.length !== 1 || values[0] !== ""))
        expect(partitionValues(text)).toEqual(values)
      }),
    )
  })

  it("is readable up to 128 characters, and a hash beyond that", () => {
    expect(partitionText(["a".repeat(128)])).toBe("a".repeat(128))
    expect(partitionText(["a".repeat(129)])).toMatch(HASHED)
    expect(partitionText([`@${"a".repeat(126)}`])).toBe(`@@${"a".repeat(126)}`)
    expect(partitionText([`@${"a".repeat(127)}`])).toMatch(HASHED)
    expect(partitionText(["a".repeat(60), "b".repeat(61)])).toHaveLength(128)
    expect(partitionText(["a".repeat(60), "b".repeat(62)])).toMatch(HASHED)
  })

  it("is the same for the same values in every process", () => {
    expect(partitionText(["a".repeat(200)])).toBe("#xdci6_VZaNZqi_WGyXPmsd")
  })

  it("differs for lone surrogates, which UTF-8 cannot encode", () => {
    const texts = ["\ud800", "\ud801", "\udfff", "\ufffd", "a\ud800", "\u{1f600}"].map((value) =>
      partitionText([value]),
    )
    expect(new Set(texts).size).toBe(6)
    for (const text of texts) expect(Buffer.from(text).toString()).toBe(text)
  })

  it("is never the same for different values", () => {
    const piece = fc.constantFrom(
      "@",
      "#",
      ":",
      "1",
      "2",
      "a",
      "b",
      "ip",
      "@ip:1.2.3.4",
      "\ud800",
      "z".repeat(120),
    )
    const value = fc.oneof(
      fc.array(piece, { minLength: 1, maxLength: 5 }).map((pieces) => pieces.join("")),
      fc.string({ minLength: 1, unit: "binary" }),
    )
    const values = fc.array(value, { maxLength: 4 })
    fc.assert(
      fc.property(fc.array(values, { minLength: 2, maxLength: 20 }), (tuples) => {
        const different = new Set(tuples.map((tuple) => JSON.stringify(tuple)))
        expect(new Set(tuples.map(partitionText)).size).toBe(different.size)
      }),
      { numRuns: 500 },
    )
  })

  it("never equals the text that replaces a missing field", () => {
    const value = fc.oneof(fc.constantFrom("@shared", "@ip:192.0.2.7", "ip:192.0.2.7", "shared"), fc.string())
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 3 }), (values) => {
        expect(partitionText(values)).not.toMatch(/^@(shared$|ip:)/)
      }),
    )
  })

  it("stays short, however long the client's value is", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ size: "large" })),
        fc.integer({ min: 1, max: 100 }),
        (values, times) => {
          const long = values.map((value) => value.repeat(times))
          expect(partitionText(long).length).toBeLessThanOrEqual(LONGEST_PARTITION)
        },
      ),
      { numRuns: 30 },
    )
    expect(partitionText(["x".repeat(5_000_000)])).toMatch(HASHED)
  })
})

describe("the partition of a request", () => {
  const ip = "192.0.2.7"
  it.each<[readonly string[], OnMissing, Record<string, string>, string]>([
    [[], "deny", {}, ""],
    [["user"], "ip", { user: "ann", ip }, "ann"],
    [["user"], "skip", { user: "@ip:192.0.2.7" }, "@@ip:192.0.2.7"],
    [["user"], "ip", { ip }, "@ip:192.0.2.7"],
    [["user"], "ip", { ip: "2001:db8::/64" }, "@ip:2001:db8::/64"],
    [["user"], "ip", {}, "@shared"],
    [["user"], "shared", { ip }, "@shared"],
    [["ip"], "ip", { ip }, "192.0.2.7"],
    [["ip"], "ip", {}, "@shared"],
    [["ip"], "shared", {}, "@shared"],
    [["user", "ip"], "ip", { user: "7", ip }, "@1:79:192.0.2.7"],
    [["ip", "user"], "ip", { user: "7", ip }, "@9:192.0.2.71:7"],
    [["user", "plan"], "ip", { user: "7", ip }, "@ip:192.0.2.7"],
    [["user", "plan"], "ip", { plan: "free", ip }, "@ip:192.0.2.7"],
    [["user", "plan"], "shared", { plan: "free", ip }, "@shared"],
    [["service"], "deny", { service: "" }, ""],
  ])("with the fields %j, onMissing %j and the values %j is %j", (fields, onMissing, request, text) => {
    expect(partition(fields, onMissing, request)).toBe(text)
  })

  it("is not counted if a field is missing and the rule skips such requests", () => {
    expect(partition(["user"], "skip", { ip })).toBe(SKIP)
    expect(partition(["ip", "user"], "skip", { ip })).toBe(SKIP)
  })

  it("names the first missing field if the rule denies requests without it", () => {
    expect(partition(["user"], "deny", { ip })).toEqual({ field: "user" })
    expect(partition(["ip", "user", "plan"], "deny", { ip, plan: "free" })).toEqual({ field: "user" })
    expect(partition(["plan", "user"], "deny", { ip })).toEqual({ field: "plan" })
  })

  it("is shared if the request has no address, and never contains the text undefined", () => {
    expect(partition(["ip"], "ip", { ip: undefined })).toBe("@shared")
    expect(partition(["user", "ip"], "ip", { user: "7", ip: undefined })).toBe("@shared")
  })

  it("is computed by readers that receive the facts and the app's own request", () => {
    const seen: unknown[] = []
    const facts: RequestFacts = { method: "GET" }
    const request = {}
    const reader = (field: string) => (given: RequestFacts, asked: unknown) => {
      seen.push(field, given === facts, asked === request)
      return field === "a" ? "1" : undefined
    }
    compilePartition({ fields: ["a", "b"], onMissing: "ip" }, reader)(facts, request)
    compilePartition({ fields: ["c"], onMissing: "ip" }, reader)(facts, request)
    expect(seen).toEqual(["a", "b", "ip", "c", "ip"].flatMap((field) => [field, true, true]))
  })
})
