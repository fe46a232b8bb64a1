import { expect, it } from "vitest"
import { HELP } from "../help.ts"
import { readOverviewCommand } from "./command-line.ts"
import { PARTS } from "./measurement.ts"

it("the bench command measures everything by default", () => {
  expect(readOverviewCommand([], "results")).toEqual({
    quick: false,
    parts: PARTS,
    into: "results",
    figures: false,
  })
})

it("the bench command accepts the names of parts, and measures them in a fixed order", () => {
  const { parts, quick, into } = readOverviewCommand(
    ["--", "--only", "memory", "--only", "redis", "--quick", "--into", "elsewhere"],
    "results",
  )
  expect({ parts, quick, into }).toEqual({ parts: ["redis", "memory"], quick: true, into: "elsewhere" })
})

it("the bench command rejects --figures together with --quick", () => {
  expect(readOverviewCommand(["--figures", "--only", "memory"], "results").figures).toBe(true)
  expect(() => readOverviewCommand(["--figures", "--quick"], "results")).toThrow("not --quick")
})

it.each([[["--only", "speed"]], [["--fast"]], [["extra"]]])(
  "the bench command rejects the arguments %j, and lists the accepted arguments",
  (args) => {
    expect(() => readOverviewCommand(args, "results")).toThrow(
      /Accepted: --quick.*--only PART \(in-process, redis/,
    )
  },
)

it("the help of the bench command lists every part, and names --behaviour", () => {
  for (const part of PARTS) expect(HELP).toContain(part)
  expect(HELP).toContain("bench --behaviour")
})
