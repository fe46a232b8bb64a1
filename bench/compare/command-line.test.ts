import { expect, it } from "vitest"
import { readCompareCommand } from "./command-line.ts"

it("bench:compare measures every group in ten rounds by default", () => {
  expect(readCompareCommand(["main"])).toEqual({
    commit: "main",
    groups: ["decide", "store", "http", "service"],
    rounds: 10,
    json: undefined,
  })
})

it("bench:compare accepts a list of groups or repeated --only options, and measures groups in a fixed order", () => {
  expect(readCompareCommand(["--", "v1.0", "--only", "http,decide"]).groups).toEqual(["decide", "http"])
  expect(readCompareCommand(["--only", "store", "--only", "decide", "v1.0"]).groups).toEqual([
    "decide",
    "store",
  ])
})

it("bench:compare accepts a number of rounds, a short run and a file for the samples", () => {
  expect(readCompareCommand(["main", "--rounds", "20", "--json", "out.json"])).toMatchObject({
    rounds: 20,
    json: "out.json",
  })
  expect(readCompareCommand(["main", "--quick"]).rounds).toBe(2)
})

it.each([
  [[], "Name the commit to compare with"],
  [["main", "v1.0"], "Name one commit, not main and v1.0"],
  [["main", "--only", "speed"], '--only "speed" is not a group; use decide, store, http'],
  [["main", "--only", "decide,"], '--only "" is not a group'],
  [["main", "--rounds", "9"], '--rounds "9" is invalid; use an integer from 10 to 999'],
  [["main", "--rounds", "many"], '--rounds "many" is invalid'],
  [["main", "--fast"], "--fast"],
])("bench:compare rejects the arguments %j with one line that ends with the usage", (args, message) => {
  let thrown: unknown
  try {
    readCompareCommand(args)
  } catch (error) {
    thrown = error
  }
  const text = (thrown as Error).message
  expect(text).toContain(message)
  expect(text).toMatch(/\. Usage: bench:compare COMMIT \[--only decide,store,http,service\]/)
  expect(text).not.toContain("\n")
})
