import { expect, it } from "vitest"
import { HELP } from "../help.ts"
import { readOverviewCommand } from "./command-line.ts"
import { PARTS } from "./measurement.ts"

it("the command bench measures everything by default", () => {
  expect(readOverviewCommand([], "results")).toEqual({
    quick: false,
    parts: PARTS,
    into: "results",
    figures: false,
  })
})

it("the command bench accepts parts by name, and measures them in a fixed order", () => {
  const { parts, quick, into } = readOverviewCommand(
    ["--", "--only", "memory", "--only", "redis", "--quick", "--into", "elsewhere"],
    "results",
  )
  expect({ parts, quick, into }).toEqual({ parts: ["redis", "memory"], quick: true, into: "elsewhere" })
})

it("the command bench writes figures only from a complete run", () => {
  expect(readOverviewCommand(["--figures", "--only", "memory"], "results").figures).toBe(true)
  expect(() => readOverviewCommand(["--figures", "--quick"], "results")).toThrow("not --quick")
})

it.each([[["--only", "speed"]], [["--fast"]], [["extra"]]])(
  "the command bench rejects %j and lists the accepted arguments",
  (args) => {
    expect(() => readOverviewCommand(args, "results")).toThrow(
      /Accepted: --quick.*--only PART \(in-process, redis/,
    )
  },
)

it("the command bench shows help with every part and the drills", () => {
  for (const part of PARTS) expect(HELP).toContain(part)
  expect(HELP).toContain("bench --behaviour")
})
