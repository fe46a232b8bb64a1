import { describe, expect, it } from "vitest"
import type { Policy } from "../ground/policy.ts"
import { BoundedTable, type TableEntry } from "./bounded-table.ts"

const POLICY: Policy = {
  name: "all",
  counter: "all",
  algorithm: "sliding-window",
  limit: 1_000,
  windowMs: 60_000,
  align: "epoch",
}

function entry(partition: string, usedMs: number, counter = "all"): TableEntry {
  return { policy: { ...POLICY, counter }, partition, usedMs }
}

describe("a bounded table", () => {
  it("finds an entry by counter and partition", () => {
    const table = new BoundedTable(1_000)
    const [one, other] = [entry("a", 0), entry("a", 0, "other")]
    expect([table.add(one), table.add(other)]).toEqual([undefined, undefined])
    expect(table.find("all", "a")).toBe(one)
    expect(table.find("other", "a")).toBe(other)
    expect([table.find("all", "b"), table.find("another", "a")]).toEqual([undefined, undefined])
  })

  it("no longer finds an entry that was deleted", () => {
    const table = new BoundedTable(1_000)
    const entries = ["a", "b", "c"].map((partition) => entry(partition, 0))
    for (const one of entries) table.add(one)
    table.delete(entries[0] as TableEntry)
    table.delete(entries[0] as TableEntry)
    expect(table.find("all", "a")).toBeUndefined()
    expect([...table].map(({ partition }) => partition).sort()).toEqual(["b", "c"])
    table.delete(entries[2] as TableEntry)
    table.delete(entries[1] as TableEntry)
    expect([table.size, [...table]]).toEqual([0, []])
  })

  it("still finds the other entries of a counter after one was deleted", () => {
    const table = new BoundedTable(1_000)
    const [one, other] = [entry("a", 0), entry("b", 0)]
    table.add(one)
    table.add(other)
    expect(table.find("all", "a")).toBe(one)
    table.delete(one)
    expect(table.find("all", "b")).toBe(other)
  })

  it("examines 16 entries, and evicts the first of equally old entries", () => {
    const table = new BoundedTable(17)
    for (let i = 0; i < 17; i++) table.add(entry(String(i), i === 16 ? 0 : 5))
    expect(table.leastUsed()?.partition).toBe("0")
    expect(table.leastUsed()?.partition).toBe("16")
  })

  it("evicts the least recently used entry when it is full", () => {
    const table = new BoundedTable(3)
    for (const [partition, usedMs] of [
      ["a", 30],
      ["b", 10],
      ["c", 20],
    ] as const)
      table.add(entry(partition, usedMs))
    expect(table.add(entry("d", 40))?.partition).toBe("b")
    expect(table.add(entry("e", 40))?.partition).toBe("c")
    expect([...table].map(({ partition }) => partition).sort()).toEqual(["a", "d", "e"])
  })

  it("allows deletions during an iteration", () => {
    const table = new BoundedTable(1_000)
    for (const partition of ["a", "b", "c"]) table.add(entry(partition, 0))
    for (const one of table) table.delete(one)
    expect(table.size).toBe(0)
  })
})
