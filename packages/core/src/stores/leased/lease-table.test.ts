import { describe, expect, it } from "vitest"
import type { Policy } from "../../ground/policy.ts"
import { Lease } from "./lease.ts"
import { LeaseTable } from "./lease-table.ts"

const POLICY: Policy = {
  name: "all",
  counter: "all",
  algorithm: "sliding-window",
  limit: 1_000,
  windowMs: 60_000,
  align: "epoch",
}

function lease(partition: string, usedMs: number, counter = "all"): Lease {
  const created = new Lease({ policy: { ...POLICY, counter }, partition }, 1_000)
  created.ask(1, usedMs)
  return created
}

describe("a table of leases", () => {
  it("finds a lease by counter and partition", () => {
    const table = new LeaseTable()
    const [one, other] = [lease("a", 0), lease("a", 0, "other")]
    expect([table.add(one), table.add(other)]).toEqual([undefined, undefined])
    expect(table.find("all", "a")).toBe(one)
    expect(table.find("other", "a")).toBe(other)
    expect([table.find("all", "b"), table.find("another", "a")]).toEqual([undefined, undefined])
  })

  it("no longer finds a lease that was deleted", () => {
    const table = new LeaseTable()
    const leases = ["a", "b", "c"].map((partition) => lease(partition, 0))
    for (const one of leases) table.add(one)
    table.delete(leases[0] as Lease)
    table.delete(leases[0] as Lease)
    expect(table.find("all", "a")).toBeUndefined()
    expect([...table].map(({ partition }) => partition).sort()).toEqual(["b", "c"])
    table.delete(leases[2] as Lease)
    table.delete(leases[1] as Lease)
    expect([table.size, [...table]]).toEqual([0, []])
  })

  it("evicts the least recently used lease when it is full", () => {
    const table = new LeaseTable(3)
    for (const [partition, usedMs] of [
      ["a", 30],
      ["b", 10],
      ["c", 20],
    ] as const)
      table.add(lease(partition, usedMs))
    expect(table.add(lease("d", 40))?.partition).toBe("b")
    expect(table.add(lease("e", 40))?.partition).toBe("c")
    expect([...table].map(({ partition }) => partition).sort()).toEqual(["a", "d", "e"])
  })

  it("may be changed while it is iterated", () => {
    const table = new LeaseTable()
    for (const partition of ["a", "b", "c"]) table.add(lease(partition, 0))
    for (const one of table) table.delete(one)
    expect(table.size).toBe(0)
  })
})
