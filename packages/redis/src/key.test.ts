import type { Policy } from "@sluice/core/stores"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { keyNamer, redisKey } from "./key.ts"

const POLICY: Policy = {
  name: "login",
  counter: "Zk3hX0pQ9vLm2TcY",
  algorithm: "sliding-window",
  limit: 10,
  windowMs: 60_000,
  align: "epoch",
}

function key(partition: string, counter: string = POLICY.counter, prefix?: string): string {
  return redisKey({ policy: { ...POLICY, counter }, partition }, prefix)
}

/** Returns the part of a key that determines its slot in a cluster. */
function tagOf(name: string): string {
  return /^[^{}]*\{([0-9a-f]{2})\}/.exec(name)?.[1] ?? "none"
}

describe("redisKey", () => {
  // A counter's key never changes within a layout, because processes of different versions share counters.
  it.each([
    ["203.0.113.10", "sl2:{44}Zk3hX0pQ9vLm2TcY203.0.113.10"],
    ["", "sl2:{89}Zk3hX0pQ9vLm2TcY"],
    ["alice", "sl2:{51}Zk3hX0pQ9vLm2TcYalice"],
    ["2001:db8::/56", "sl2:{0a}Zk3hX0pQ9vLm2TcY2001:db8::/56"],
    ["x".repeat(65), "sl2:{0f}Zk3hX0pQ9vLm2TcY#SNsfxLBUEWO-77ACFpMI32"],
    ["zoë", "sl2:{97}Zk3hX0pQ9vLm2TcY#wuTbX5YffCeYvCbLjUl7Xc"],
  ])("of %j is %s", (partition, expected) => {
    expect(key(partition)).toBe(expected)
  })

  it.each([
    ["readable text as it is", "203.0.113.10", /^sl2:\{[0-9a-f]{2}\}Zk3hX0pQ9vLm2TcY203\.0\.113\.10$/],
    ["nothing after the counter if it counts the whole service", "", /^sl2:\{[0-9a-f]{2}\}Zk3hX0pQ9vLm2TcY$/],
    [
      "braces as they are, because the key's own braces come first",
      "a{b}c",
      /^sl2:\{[0-9a-f]{2}\}Zk3hX0pQ9vLm2TcYa\{b\}c$/,
    ],
    ["64 characters as they are", "x".repeat(64), /^sl2:\{[0-9a-f]{2}\}Zk3hX0pQ9vLm2TcYx{64}$/],
    ["more than 64 characters as a hash", "x".repeat(65), /^sl2:\{[0-9a-f]{2}\}Zk3hX0pQ9vLm2TcY#[\w-]{22}$/],
    ["non-ASCII text as a hash", "zoë", /^sl2:\{[0-9a-f]{2}\}Zk3hX0pQ9vLm2TcY#[\w-]{22}$/],
    ["a control character as a hash", "a\nb", /^sl2:\{[0-9a-f]{2}\}Zk3hX0pQ9vLm2TcY#[\w-]{22}$/],
    ["the last printable character, ~, as it is", "~ ", /^sl2:\{[0-9a-f]{2}\}Zk3hX0pQ9vLm2TcY~ $/],
    ["DEL as a hash", "\x7f", /^sl2:\{[0-9a-f]{2}\}Zk3hX0pQ9vLm2TcY#[\w-]{22}$/],
    [
      "text that looks like a hash as another hash",
      "#abc",
      /^sl2:\{[0-9a-f]{2}\}Zk3hX0pQ9vLm2TcY#[\w-]{22}$/,
    ],
  ])("writes %s", (_, partition, expected) => {
    expect(key(partition)).toMatch(expected)
  })

  it("puts the prefix first", () => {
    expect(key("alice", "Zk3hX0pQ9vLm2TcY", "app:")).toBe(`app:${key("alice")}`)
  })

  it("returns the same key, whatever keys were requested before", () => {
    const partitions = fc.constantFrom("", "alice", "bob", "#abc", "zoë")
    const counters = fc.constantFrom("aaaaaaaa", "bbbbbbbb")
    fc.assert(
      fc.property(fc.array(fc.tuple(partitions, counters)), (list) => {
        const nameKey = keyNamer("app:")
        for (const [partition, counter] of list) {
          expect(nameKey({ policy: { ...POLICY, counter }, partition })).toBe(key(partition, counter, "app:"))
        }
      }),
      { seed: 9_003 },
    )
  })

  it("returns the same key even for more rules than are cached", () => {
    const nameKey = keyNamer("")
    for (let i = 0; i < 2_500; i++) {
      const counter = `counter${i % 1_250}`
      expect(nameKey({ policy: { ...POLICY, counter }, partition: "alice" })).toBe(key("alice", counter))
    }
  })

  it("returns at most 82 characters after the prefix, for any partition", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (partition) => {
        expect(key(partition).length).toBeLessThanOrEqual(8 + 8 + 64 + 2)
      }),
      { seed: 9_001 },
    )
  })

  it("returns different keys for any two partitions, including lone surrogates and hashes of other partitions", () => {
    const texts = fc.oneof(
      fc.string({ unit: "binary", maxLength: 100 }),
      fc.constantFrom("\ud800", "\udfff", "\ufffd", "", "#", " "),
      fc.string({ unit: "binary" }).map((text) => key(text).slice(16)),
    )
    fc.assert(
      fc.property(texts, texts, (one, other) => {
        expect(key(one) === key(other)).toBe(one === other)
      }),
      { seed: 9_002, numRuns: 1_000 },
    )
  })

  it("returns different keys for two malformed strings with the same UTF-8 bytes", () => {
    expect(new Set(["\ud800", "\udfff", "\ufffd"].map((partition) => key(partition))).size).toBe(3)
  })

  it("returns different keys for two counters, even if a partition looks like the end of a counter", () => {
    expect(key("Qa", "aaaaaaaa")).not.toBe(key("a", "aaaaaaaQ"))
    expect(key("same", "aaaaaaaa")).not.toBe(key("same", "aaaaaaab"))
  })

  it("puts all counters of a client into one slot, and spreads whole-service counters over slots", () => {
    expect(tagOf(key("alice", "aaaaaaaa"))).toBe(tagOf(key("alice", "bbbbbbbb")))
    const shared = Array.from({ length: 40 }, (_, i) => tagOf(key("", `counter${i % 10}${i}`)))
    expect(new Set(shared).size).toBeGreaterThan(20)
  })

  it("spreads clients evenly over all 256 groups", () => {
    for (const partitionOf of [
      (i: number) => `10.0.${i >> 8}.${i & 255}`,
      (i: number) => `user-${i}`,
      String,
    ]) {
      const nameKey = keyNamer("")
      const sizes = new Map<string, number>()
      for (let i = 0; i < 51_200; i++) {
        const tag = tagOf(nameKey({ policy: POLICY, partition: partitionOf(i) }))
        sizes.set(tag, (sizes.get(tag) ?? 0) + 1)
      }
      expect(sizes.size).toBe(256)
      // The mean is 200.
      expect(Math.max(...sizes.values())).toBeLessThan(400)
      expect(Math.min(...sizes.values())).toBeGreaterThan(50)
    }
  })
})
