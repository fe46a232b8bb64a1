import { describe, expect, it } from "vitest"
import { compileValueList } from "./value-list.ts"

describe("a list of values", () => {
  it("contains only values that are equal to an entry", () => {
    const listed = compileValueList("user_id", ["7", "Ann", "10.0.0.0/8"])
    expect(["7", "Ann", "10.0.0.0/8"].map(listed)).toEqual([true, true, true])
    expect(["07", "ann", "10.0.0.1", "", "__proto__"].map(listed)).toEqual([
      false,
      false,
      false,
      false,
      false,
    ])
    expect(compileValueList("user_id", [])("7")).toBe(false)
  })
})

it("a list of methods ignores upper and lower case", () => {
  const listed = compileValueList("method", ["post", "DELETE"])
  expect(["POST", "DELETE", "GET"].map(listed)).toEqual([true, true, false])
})

describe("a list of addresses and ranges", () => {
  const listed = compileValueList("ip", [
    "192.0.2.7",
    "10.0.0.0/8",
    "::ffff:198.51.100.0/120",
    "2001:DB8:0:0::/48",
    "2001:db8:1::7",
  ])
  it.each([
    ["192.0.2.7", true],
    ["192.0.2.8", false],
    ["10.255.0.1", true],
    ["11.0.0.1", false],
    ["198.51.100.99", true],
    ["198.51.101.1", false],
    ["::ffff:192.0.2.7", true],
    ["2001:db8:0:9::1", true],
    ["2001:db8:1::7", true],
    ["2001:db8:1::8", false],
    ["not an address", false],
  ])("contains %j: %j", (address, expected) => {
    expect(listed(address)).toBe(expected)
  })
})
