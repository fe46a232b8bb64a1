import { describe, expect, it } from "vitest"
import { Contract } from "./behaviour.ts"

const show = async (): Promise<void> => {}

describe("a contract", () => {
  it("lists its behaviors in order, each with the name of its group", () => {
    const contract = new Contract()
    contract.add("loads", show)
    contract.group("closed", () => contract.add("rejects", show))
    contract.add("lists", show)
    expect(contract.done()).toEqual([
      { name: "loads", show },
      { name: "closed: rejects", show },
      { name: "lists", show },
    ])
  })

  it("reports known deviations with their reasons", () => {
    const contract = new Contract([{ behaviour: "closed: rejects", reason: "it cannot be closed" }])
    contract.group("closed", () => contract.add("rejects", show))
    contract.add("rejects", show)
    expect(contract.done()).toEqual([
      { name: "closed: rejects", show, deviation: "it cannot be closed" },
      { name: "rejects", show },
    ])
  })

  it("rejects a deviation from an unknown behavior, and lists the known behaviors", () => {
    const contract = new Contract([{ behaviour: "reject", reason: "" }])
    contract.add("rejects", show)
    contract.add("lists", show)
    expect(() => contract.done()).toThrow(
      "A deviation names an unknown behavior: reject. The known behaviors are:\nrejects\nlists",
    )
  })

  it("rejects two behaviors with the same name, because a deviation could mean either", () => {
    const contract = new Contract()
    contract.add("lists", show)
    contract.add("lists", show)
    expect(() => contract.done()).toThrow("Two behaviors have the same name: lists. Rename one of them.")
  })
})
