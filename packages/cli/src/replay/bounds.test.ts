import { describe, expect, it } from "vitest"
import { UsageError } from "../usage-error.ts"
import { checkBounds, NeverList, parseBound, percentText } from "./bounds.ts"
import { progressText } from "./progress.ts"

const total = { seen: 1_000, refused: 5, clients: { seen: 200, refused: 3 } }

describe("the bounds of a replay", () => {
  it.each([
    ["5", true],
    ["4", false],
    ["0.5%", true],
    ["0.49%", false],
    ["0", false],
  ])("hold up to the number or share itself: at most %s of 5 in 1,000", (text, holds) => {
    const bound = parseBound(text)
    expect(checkBounds({ maxRefused: bound }, { total })).toMatchObject([
      { bound: `--max-refused ${text}`, holds },
    ])
  })

  it("are checked for clients and for requests that are newly refused", () => {
    const against = {
      file: "old.yaml",
      newlyRefused: { requests: 7, clients: 1 },
      noLongerRefused: { requests: 0, clients: 0 },
      rules: [],
      clients: [],
    }
    const bounds = {
      maxRefusedClients: parseBound("1%"),
      maxNewlyRefused: parseBound("6"),
    }
    expect(checkBounds(bounds, { total, against })).toEqual([
      { bound: "--max-refused-clients 1%", value: "3 of 200, 1.5%", holds: false },
      { bound: "--max-newly-refused 6", value: "7", holds: false },
    ])
    expect(checkBounds({}, { total, against })).toEqual([])
  })

  it.each(["", "-1", "1e3", "101%", "%", "0.1", "12345678901234567", "5 %"])(
    "are not the text %j",
    (text) => {
      expect(parseBound(text)).toBeUndefined()
    },
  )
})

describe("NeverList", () => {
  const list = (text: string, ipv6Prefix?: number) => new NeverList("known.txt", text, ipv6Prefix)

  it("finds addresses, networks and values of fields", () => {
    const never = list(
      "\ufeff# partners\r\n192.0.2.7\r\n198.51.100.0/24\r\n  ann  \n2001:db8:1:2::9\n2001:db8:9::/48\n",
    )
    never.refused("192.0.2.8", undefined, "ben")
    expect(never.found).toEqual([])
    never.refused("192.0.2.7", "ann")
    never.refused("198.51.100.99")
    // An IPv6 client is its network.
    never.refused("2001:db8:1:2::/64", "2001:db8:9:7::/64")
    expect(never.found).toEqual([
      "192.0.2.7",
      "ann",
      "198.51.100.99",
      "2001:db8:1:2::/64",
      "2001:db8:9:7::/64",
    ])
    expect(checkBounds({ never }, { total })).toEqual([
      { bound: "--never known.txt", value: "refused: 192.0.2.7 and 4 more", holds: false },
    ])
  })

  it("uses the length of IPv6 networks that the limiter uses", () => {
    const never = list("2001:db8:1:2::9", 128)
    never.refused("2001:db8:1:2::/64")
    expect(checkBounds({ never }, { total })).toMatchObject([
      { value: "none of them is refused", holds: true },
    ])
    never.refused("2001:db8:1:2::9/128")
    expect(never.found).toEqual(["2001:db8:1:2::9/128"])
  })

  it.each(["192.0.2.0/33", "192.0.2.0/x", "2001:db8::/129"])("rejects the network %s", (text) => {
    expect(() => list(text)).toThrow(UsageError)
    expect(() => list(text)).toThrow(`${text} in known.txt is not a network`)
  })

  it("rejects a file that cannot be read", () => {
    expect(() => NeverList.ofFile("/nowhere/known.txt", undefined)).toThrow(
      "--never: /nowhere/known.txt cannot be read",
    )
  })
})

it.each([
  [0, 10, "0.0%"],
  [5, 0, "0.0%"],
  [1, 1_000_000, "<0.01%"],
  [23, 158_659, "0.01%"],
  [154, 1_000, "15.4%"],
])("prints %d of %d as %s", (part, all, text) => {
  expect(percentText(part, all)).toBe(text)
})

describe("progressText", () => {
  it("shows the share, the lines, the rate and the time left", () => {
    const text = progressText({ bytes: 500_000_000, allBytes: 1_000_000_000, lines: 2_800_000 }, 10_000)
    expect(text).toBe(`[${"#".repeat(12)}${"-".repeat(12)}] 50%  2,800,000 lines, 50.0 MB/s, 10 s left`)
  })

  it("shows no share for standard input", () => {
    expect(progressText({ bytes: 2_000_000, allBytes: undefined, lines: 11 }, 1_000)).toBe(
      "11 lines, 2.0 MB/s",
    )
  })
})
