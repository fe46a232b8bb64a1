import type { Policy } from "@sluice/core/stores"
import { expect } from "expect"
import { check, countOf, currentOf, SLIDING, type StoreSuite, takeOne } from "./asking.ts"

/** Adds the behaviors that keep counters separate. `partitions` is the number of partitions in one of these tests. */
export function keys({ group, behaves }: StoreSuite, partitions: number): void {
  group("keys", () => {
    const counter = (text: string): Policy => ({ ...SLIDING, counter: text })

    behaves("give every pair of counter and partition its own count", async (store) => {
      const long = "x".repeat(300)
      const pairs: [counter: string, partition: string][] = [
        ["a:b", "c"],
        ["a", "b:c"],
        ["a", ":b:c"],
        ["a:b:c", ""],
        ["a", ""],
        ["ab", ""],
        ["a", "b"],
        ["a", "B"],
        ["a", "b "],
        ["a", " b"],
        ["a", "b\0"],
        ["a", "\0b"],
        ["a", "\0"],
        ["a", "{b}"],
        ["a", "b\r\nc"],
        ["a", "b\nc"],
        ["a", "*"],
        ["a", "%62"],
        ["a", "é"],
        ["a", "e\u0301"],
        ["a", "日本"],
        ["a", "日木"],
        ["a", "\u{1f600}"],
        ["a", "\u{1f601}"],
        ["a", "127.0.0.1"],
        ["a", "127.0.0.10"],
        ["a", "__proto__"],
        ["a", "constructor"],
        ["a", `${"y".repeat(127)}a`],
        ["a", `${"y".repeat(127)}b`],
        ["a", `${"y".repeat(127)}B`],
        ["a", long],
        ["a", `${long}x`],
        ["a", `${long}\0`],
      ]
      for (const [at, [text, partition]] of pairs.entries()) {
        const { checks } = await takeOne(store, check(counter(text), 1 + (at % 10), { partition }))
        expect([text, partition, currentOf(checks)]).toEqual([text, partition, 1 + (at % 10)])
      }
      for (const [at, [text, partition]] of pairs.entries()) {
        const counted = await countOf(store, counter(text), partition)
        expect([text, partition, counted]).toEqual([text, partition, 1 + (at % 10)])
      }
    })

    behaves("keep the counts of many partitions separate", async (store) => {
      const requests = Array.from({ length: partitions }, (_, i) => [
        check(SLIDING, 10, { partition: `10.0.${i >> 8}.${i & 255}` }),
      ])
      const takeEach = async () => Promise.all(requests.map(async (checks) => store.take(checks)))
      const first = await takeEach()
      expect(first.filter(({ granted }) => granted)).toHaveLength(partitions)
      const second = await takeEach()
      expect(second.filter(({ granted }) => granted)).toHaveLength(0)
    })
  })
}
