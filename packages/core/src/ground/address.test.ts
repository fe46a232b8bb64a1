import { isIPv4, isIPv6 } from "node:net"
import fc from "fast-check"
import ipaddr from "ipaddr.js"
import { describe, expect, it, vi } from "vitest"
import {
  type AddressRange,
  canonicalAddress,
  compileAddressGroup,
  compileAddressTable,
  parseAddress,
  parseAddressRange,
  remember,
} from "./address.ts"

/** Each spelling with its canonical string; undefined if it is not a valid address. */
const SPELLINGS: readonly (readonly [spelling: string, canonical: string | undefined])[] = [
  // IPv4: four decimal parts and nothing else.
  ["192.0.2.7", "192.0.2.7"],
  ["0.0.0.0", "0.0.0.0"],
  ["255.255.255.255", "255.255.255.255"],
  ["10.0.0.100", "10.0.0.100"],
  ["256.0.0.1", undefined],
  ["1.2.3.1000", undefined],
  ["127.1", undefined],
  ["1.2.3", undefined],
  ["1.2.3.4.5", undefined],
  ["1.2.3.", undefined],
  [".1.2.3", undefined],
  ["1..2.3", undefined],
  ["2130706433", undefined],
  ["0x7f.0.0.1", undefined],
  ["0x7f000001", undefined],
  ["010.0.0.1", undefined],
  ["10.0.0.01", undefined],
  ["00.0.0.0", undefined],
  ["+1.2.3.4", undefined],
  ["1.2.3.-4", undefined],
  ["1.2.3.4 ", undefined],
  [" 1.2.3.4", undefined],
  ["1.2.3.4%eth0", undefined],
  ["1.2.3.4/32", undefined],
  ["1.2.3.4:80", undefined],
  ["١.٢.٣.٤", undefined],
  // IPv4-mapped addresses in any spelling, which are recognized by their bits.
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["::FFFF:192.0.2.7", "192.0.2.7"],
  ["::ffff:c000:207", "192.0.2.7"],
  ["::ffff:C000:0207", "192.0.2.7"],
  ["0:0:0:0:0:ffff:192.0.2.7", "192.0.2.7"],
  ["0000:0000:0000:0000:0000:ffff:c000:0207", "192.0.2.7"],
  ["::0:ffff:192.0.2.7", "192.0.2.7"],
  ["0::ffff:c000:207", "192.0.2.7"],
  ["::ffff:192.0.2.7%eth0", "192.0.2.7"],
  ["::ffff:0:0", "0.0.0.0"],
  ["::ffff:255.255.255.255", "255.255.255.255"],
  ["::ffff:127.1", undefined],
  ["::ffff:0x7f.0.0.1", undefined],
  ["::ffff:010.0.0.1", undefined],
  ["::ffff:256.0.0.1", undefined],
  // Addresses that only end in dotted notation, or that look like mapped addresses.
  ["::192.0.2.7", "::c000:207"],
  ["::1.2.3.4", "::102:304"],
  ["64:ff9b::192.0.2.7", "64:ff9b::c000:207"],
  ["::ffff:0:192.0.2.7", "::ffff:0:c000:207"],
  ["2001:db8::192.0.2.7", "2001:db8::c000:207"],
  ["2001:db8::ffff:192.0.2.7", "2001:db8::ffff:c000:207"],
  ["1::ffff:192.0.2.7", "1::ffff:c000:207"],
  ["0:1::ffff:192.0.2.7", "0:1::ffff:c000:207"],
  ["0:0:1::ffff:192.0.2.7", "::1:0:0:ffff:c000:207"],
  ["0:0:0:1:0:ffff:192.0.2.7", "::1:0:ffff:c000:207"],
  ["::1:ffff:192.0.2.7", "::1:ffff:c000:207"],
  ["::fffe:192.0.2.7", "::fffe:c000:207"],
  // IPv6 in the form of RFC 5952.
  ["2001:db8::1", "2001:db8::1"],
  ["2001:DB8::1", "2001:db8::1"],
  ["2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"],
  ["2001:db8:0:0:0:0:0:1", "2001:db8::1"],
  ["2001:db8::0:1", "2001:db8::1"],
  ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
  ["2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
  ["2001:0:0:1:0:0:0:1", "2001:0:0:1::1"],
  ["2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
  ["::", "::"],
  ["0::0", "::"],
  ["::1", "::1"],
  ["1::", "1::"],
  ["fe80::1%eth0", "fe80::1"],
  ["fe80::1%br_lan.5", "fe80::1"],
  ["fe80::1%25", "fe80::1"],
  [`fe80::1%${"z".repeat(64)}`, "fe80::1"],
  ["fe80::1%", undefined],
  [`0000:0000:0000:0000:0000:0000:0000:0001%${"z".repeat(90)}`, undefined],
  ["%eth0", undefined],
  ["2001:db8::1::2", undefined],
  ["2001:db8:::1", undefined],
  ["1:2:3:4:5:6:7", undefined],
  ["1:2:3:4:5:6:7:8:9", undefined],
  ["1:2:3:4:5:6:7:", undefined],
  ["12345::", undefined],
  ["g::1", undefined],
  ["[2001:db8::1]", undefined],
  ["2001:db8::1/64", undefined],
  [" ::1", undefined],
  [":", undefined],
  // Invalid addresses.
  ["", undefined],
  ["undefined", undefined],
  ["localhost", undefined],
  ["unknown", undefined],
  ["_hidden", undefined],
  ["__proto__", undefined],
  ["1".repeat(100_000), undefined],
  [":".repeat(100_000), undefined],
]

describe("the address parser", () => {
  it.each(SPELLINGS)("converts %j to %j", (spelling, canonical) => {
    expect(canonicalAddress(spelling)).toBe(canonical)
    expect(parseAddress(spelling)?.text).toBe(canonical)
    // The second result comes from the cache.
    expect(canonicalAddress(spelling)).toBe(canonical)
  })

  it("accepts the same IPv4 strings as Node", () => {
    const nearly = fc.stringMatching(/^[0-9]{0,3}(\.[0-9]{0,3}){2,4}[0-9x. ]?$/)
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), nearly), (text) => {
        expect(canonicalAddress(text)).toBe(isIPv4(text) ? text : undefined)
      }),
    )
  })

  it("accepts the same IPv6 strings as Node, and returns canonical addresses unchanged", () => {
    const nearly = fc.stringMatching(/^[0-9a-fA-F:.]{0,24}$/)
    fc.assert(
      fc.property(fc.oneof(fc.ipV6(), nearly), (text) => {
        const canonical = canonicalAddress(text)
        expect(canonical !== undefined).toBe(isIPv6(text) || isIPv4(text))
        if (canonical !== undefined) expect(canonicalAddress(canonical)).toBe(canonical)
      }),
      { numRuns: 500 },
    )
  })

  it("parses and formats IPv6 addresses like ipaddr.js", () => {
    const group = fc.oneof(fc.constantFrom(0, 0, 1), fc.integer({ min: 0, max: 0xffff }))
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const address = new ipaddr.IPv6(groups)
        fc.pre(!address.isIPv4MappedAddress())
        const expected = { text: address.toRFC5952String(), groups }
        expect(parseAddress(address.toNormalizedString())).toEqual(expected)
        expect(parseAddress(expected.text)).toEqual(expected)
      }),
      { numRuns: 500 },
    )
  })

  it("converts every spelling of an IPv4-mapped address to plain IPv4", () => {
    fc.assert(
      fc.property(fc.ipV4(), (ipv4) => {
        const hex = ipv4.split(".").map((part) => Number(part).toString(16).padStart(2, "0"))
        expect(canonicalAddress(`::ffff:${ipv4}`)).toBe(ipv4)
        expect(canonicalAddress(`::ffff:${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`)).toBe(ipv4)
        expect(canonicalAddress(`0:0:0:0:0:FFFF:${ipv4}`)).toBe(ipv4)
        expect(canonicalAddress(`::${ipv4}`)).not.toBe(ipv4)
      }),
    )
  })
})

describe("address ranges", () => {
  it.each([
    ["10.0.0.0/8", "10.0.0.0/8"],
    ["10.1.2.3/8", "10.1.2.3/8"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["192.0.2.7", "192.0.2.7"],
    ["2001:DB8::/32", "2001:db8::/32"],
    ["2001:db8::1", "2001:db8::1"],
    ["::/128", "::/128"],
    ["::ffff:10.0.0.0/104", "10.0.0.0/8"],
    ["::ffff:0:0/96", "0.0.0.0/0"],
    ["::ffff:0:0/95", undefined],
    ["10.0.0.0/33", undefined],
    ["::/129", undefined],
    ["10.0.0.0/08", undefined],
    ["10.0.0.0/", undefined],
    ["10.0.0.0/-1", undefined],
    ["10.0.0.0/8/8", undefined],
    ["10.0.0.0/255.0.0.0", "10.0.0.0/8"],
    ["10.0.0.0/255.255.255.255", "10.0.0.0/32"],
    ["10.0.0.0/255.255.254.0", "10.0.0.0/23"],
    ["10.0.0.0/128.0.0.0", "10.0.0.0/1"],
    ["10.0.0.0/0.0.0.0", "10.0.0.0/0"],
    ["10.0.0.0/0.0.0.255", undefined],
    ["10.0.0.0/255.0.255.0", undefined],
    ["10.0.0.0/255.255.255.253", undefined],
    ["10.0.0.0/127.255.255.255", undefined],
    ["10.0.0.0/255.0.0", undefined],
    ["10.0.0.0/255.0.0.0.0", undefined],
    ["::ffff:10.0.0.0/255.0.0.0", undefined],
    ["2001:db8::/255.0.0.0", undefined],
    ["2001:db8::/ffff:ffff::", undefined],
    ["10.0/16", undefined],
    ["/8", undefined],
    ["example.com", undefined],
  ])("written as %j are parsed as %j", (written, range) => {
    expect(parseAddressRange(written)?.text).toBe(range)
  })

  it.each([
    ["10.0.0.0/8", "10.255.255.255", true],
    ["10.0.0.0/8", "11.0.0.0", false],
    ["10.0.0.0/8", "9.255.255.255", false],
    ["192.168.128.0/17", "192.168.128.0", true],
    ["192.168.128.0/17", "192.168.127.255", false],
    ["192.0.2.77/29", "192.0.2.72", true],
    ["192.0.2.77/29", "192.0.2.80", false],
    ["192.0.2.7", "192.0.2.7", true],
    ["192.0.2.7", "192.0.2.8", false],
    ["192.0.2.7/32", "192.0.2.7", true],
    ["0.0.0.0/0", "203.0.113.9", true],
    ["0.0.0.0/0", "2001:db8::1", false],
    ["::/0", "2001:db8::1", true],
    ["::/0", "203.0.113.9", false],
    ["2001:db8::/32", "2001:db8:ffff::1", true],
    ["2001:db8::/32", "2001:db9::", false],
    ["2001:db8::/33", "2001:db8:8000::", false],
    ["2001:db8::7/128", "2001:db8::7", true],
    ["2001:db8::7", "2001:db8::8", false],
    ["::ffff:10.0.0.0/104", "10.9.9.9", true],
    ["10.0.0.0/8", "::ffff:10.9.9.9", true],
    ["::ffff:192.0.2.7", "192.0.2.7", true],
    ["10.0.0.0/8", "unknown", false],
    ["10.0.0.0/8", "", false],
  ])("written as %j contain the address %j: %j", (written, address, expected) => {
    const within = compileAddressTable([[parseAddressRange(written) as AddressRange, "entry"]])
    expect(within(address)).toBe(expected ? "entry" : undefined)
    expect(within(address)).toBe(expected ? "entry" : undefined)
  })

  it("in a table match an address in any of them, and an empty table matches nothing", () => {
    const ranges = ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"].map(
      (text) => [parseAddressRange(text) as AddressRange, true] as const,
    )
    const table = compileAddressTable(ranges)
    const within = (address: string): boolean => table(address) === true
    expect(["10.1.1.1", "192.0.2.7", "2001:db8::5", "192.0.2.8"].map(within)).toEqual([
      true,
      true,
      true,
      false,
    ])
    expect(compileAddressTable([])("10.1.1.1")).toBeUndefined()
  })
})

describe("the address group", () => {
  it.each([
    ["192.0.2.7", 64, "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"],
    ["2001:db8:1:2::", 64, "2001:db8:1:2::/64"],
    ["2001:db8:1:2:3:4:5:6", 56, "2001:db8:1::/56"],
    ["2001:db8:1:ff42:3:4:5:6", 56, "2001:db8:1:ff00::/56"],
    ["2001:db8:1:2:3:4:5:6", 48, "2001:db8:1::/48"],
    ["2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6/128"],
    ["2001:db8:1:2:3:4:5:7", 127, "2001:db8:1:2:3:4:5:6/127"],
    ["ffff:db8::1", 1, "8000::/1"],
    ["::1", 64, "::/64"],
    ["::102:304", 64, "::/64"],
  ])("of %j with the prefix length %j is %j", (address, prefix, group) => {
    expect(compileAddressGroup(prefix)(address)).toBe(group)
  })

  it.each([
    ["2001:db8:1:2:3::1", "2001:db8:1::/48"],
    ["2001:db8:ff:2:3::1", "2001:db8:ff:2:3::/80"],
    ["2001:db9:1:2:3::1", "2001:db9:1:2::/64"],
    ["192.0.2.7", "192.0.2.7"],
  ])("of %j has the prefix length of the narrowest network that contains it: %j", (address, group) => {
    const networks = [
      ["2001:db8::/32", 48],
      ["2001:db8:ff::/48", 80],
    ].map(([text, prefix]) => [parseAddressRange(text as string), prefix] as [AddressRange, number])
    expect(compileAddressGroup(64, networks)(address)).toBe(group)
  })

  it("is the same for all 2^64 addresses of a /64 network", () => {
    const group = compileAddressGroup(64)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 4, maxLength: 4 }), (low) => {
        const address = `2001:db8:1:2:${low.map((bits) => bits.toString(16)).join(":")}`
        expect(group(canonicalAddress(address) as string)).toBe("2001:db8:1:2::/64")
      }),
    )
  })
})

describe("remember", () => {
  it("caches at most 4096 strings by default, because clients choose them", () => {
    const compute = vi.fn((text: string) => text)
    const same = remember(compute)
    for (let i = 0; i <= 4096; i++) same(`text ${i}`)
    expect([same("text 4096"), compute.mock.calls.length]).toEqual(["text 4096", 4097])
    expect([same("text 4095"), compute.mock.calls.length]).toEqual(["text 4095", 4098])
  })

  it("computes each string once, clears the cache when it is full, and does not cache undefined", () => {
    const compute = vi.fn((text: string) => (text === "none" ? undefined : text.length))
    const length = remember(compute, 2)
    expect([length("a"), length("bb"), length("a"), length("bb")]).toEqual([1, 2, 1, 2])
    expect(compute).toHaveBeenCalledTimes(2)
    expect([length("none"), length("none"), length("a")]).toEqual([undefined, undefined, 1])
    expect(compute).toHaveBeenCalledTimes(4)
    expect([length("ccc"), length("ccc"), length("a")]).toEqual([3, 3, 1])
    expect(compute).toHaveBeenCalledTimes(6)
  })
})
