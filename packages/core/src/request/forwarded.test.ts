import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { addressOfNode, type ForwardedHeader, visitForwarded } from "./forwarded.ts"

function addresses(name: ForwardedHeader, field: unknown, most = Number.POSITIVE_INFINITY): string[] {
  const visited: string[] = []
  visitForwarded(name, field, (address) => visited.push(address) < most)
  return visited
}

describe("a node of a forwarded header", () => {
  it.each([
    ["192.0.2.7", "192.0.2.7"],
    ["192.0.2.7:4711", "192.0.2.7"],
    ["192.0.2.7:_port", "192.0.2.7"],
    ["2001:db8::1", "2001:db8::1"],
    ["[2001:db8::1]", "2001:db8::1"],
    ["[2001:DB8::1]:443", "2001:db8::1"],
    ["[2001:db8::1]:_p.o-r_t", "2001:db8::1"],
    ["[::ffff:192.0.2.7]:80", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["fe80::1%eth0", "fe80::1"],
    ["[fe80::1%eth0]", "fe80::1"],
    ["192.0.2.7:", undefined],
    ["192.0.2.7:123456", undefined],
    ["192.0.2.7:http", undefined],
    ["192.0.2.7:80x", undefined],
    ["[192.0.2.7]", undefined],
    ["[2001:db8::1", undefined],
    ["[2001:db8::1]x", undefined],
    ["[2001:db8::1]443", undefined],
    ["x[2001:db8::1]", undefined],
    ["[]", undefined],
    ["[", undefined],
    ["010.0.0.1", undefined],
    ["127.1:80", undefined],
    ["unknown", undefined],
    ["unknown:80", undefined],
    ["_hidden", undefined],
    ["_SEVKISEK:_x", undefined],
    ["", undefined],
    [":", undefined],
  ])("%j has the address %j", (node, address) => {
    expect(addressOfNode(node)).toBe(address)
  })
})

describe("X-Forwarded-For, read from the right", () => {
  it.each<[unknown, string[]]>([
    ["192.0.2.1", ["192.0.2.1"]],
    ["192.0.2.1, 192.0.2.2,192.0.2.3", ["192.0.2.3", "192.0.2.2", "192.0.2.1"]],
    ["192.0.2.1:80,\t[2001:db8::1]:443 ", ["2001:db8::1", "192.0.2.1"]],
    [
      ["192.0.2.1, 192.0.2.2", "192.0.2.3"],
      ["192.0.2.3", "192.0.2.2", "192.0.2.1"],
    ],
    [",192.0.2.1,, ,192.0.2.2,", ["192.0.2.2", "192.0.2.1"]],
    ["192.0.2.1, unknown, 192.0.2.3", ["192.0.2.3"]],
    ["192.0.2.1, <script>", []],
    ['192.0.2.1, "192.0.2.2"', []],
    [["192.0.2.1", 7, "192.0.2.3"], ["192.0.2.3"]],
    [["192.0.2.1", ""], ["192.0.2.1"]],
    [
      ["192.0.2.1", ",192.0.2.2"],
      ["192.0.2.2", "192.0.2.1"],
    ],
    ["", []],
    [",", []],
    [[], []],
    [undefined, []],
    [null, []],
    [42, []],
    [{ length: 1, 0: "192.0.2.1" }, []],
  ])("with the value %j has the addresses %j", (field, visited) => {
    expect(addresses("x-forwarded-for", field)).toEqual(visited)
  })

  it("is read only until the visitor returns false", () => {
    expect(addresses("x-forwarded-for", "192.0.2.1, 192.0.2.2, 192.0.2.3", 2)).toEqual([
      "192.0.2.3",
      "192.0.2.2",
    ])
    expect(addresses("x-forwarded-for", ["192.0.2.1", "192.0.2.2"], 1)).toEqual(["192.0.2.2"])
  })

  it("is read up to 50 elements, including empty elements, across all lines of the header", () => {
    const list = Array.from({ length: 60 }, (_, index) => `192.0.2.${index}`)
    const last50 = list.slice(10).toReversed()
    expect(addresses("x-forwarded-for", list.join(", "))).toEqual(last50)
    expect(addresses("x-forwarded-for", list)).toEqual(last50)
    expect(addresses("x-forwarded-for", `192.0.2.1${",".repeat(49)}`)).toEqual(["192.0.2.1"])
    expect(addresses("x-forwarded-for", `192.0.2.1${",".repeat(50)}`)).toEqual([])
    expect(addresses("x-forwarded-for", ["192.0.2.1", ...Array(49).fill("")])).toEqual(["192.0.2.1"])
    expect(addresses("x-forwarded-for", ["192.0.2.1", ...Array(50).fill("")])).toEqual([])
  })

  it("is read up to 8192 characters, without an entry that is cut off there", () => {
    const exact = `192.0.2.2,${" ".repeat(8192 - 19)}192.0.2.3`
    expect(exact).toHaveLength(8192)
    expect(addresses("x-forwarded-for", exact)).toEqual(["192.0.2.3", "192.0.2.2"])
    // The cut would change "1192.0.2.2" into a valid address that is not in the header.
    expect(addresses("x-forwarded-for", `1${exact}`)).toEqual(["192.0.2.3"])
    expect(addresses("x-forwarded-for", `192.0.2.1,${exact}`)).toEqual(["192.0.2.3"])
    expect(addresses("x-forwarded-for", ["192.0.2.1", exact])).toEqual(["192.0.2.3", "192.0.2.2"])
  })
})

describe("Forwarded (RFC 7239), read from the right", () => {
  it.each<[unknown, string[]]>([
    ["for=192.0.2.1", ["192.0.2.1"]],
    ["For=192.0.2.1;proto=http;by=203.0.113.43", ["192.0.2.1"]],
    ["proto=http ; FOR=192.0.2.1", ["192.0.2.1"]],
    ['for="192.0.2.1:4711"', ["192.0.2.1"]],
    ['for="[2001:db8:cafe::17]:4711"', ["2001:db8:cafe::17"]],
    ['for="[2001:db8:cafe::17]"', ["2001:db8:cafe::17"]],
    ["for=[2001:db8::1]", ["2001:db8::1"]],
    ['for="2001:db8::1"', ["2001:db8::1"]],
    ['for="\\1\\92.0.2.1"', ["192.0.2.1"]],
    ["for=192.0.2.1, for=198.51.100.17", ["198.51.100.17", "192.0.2.1"]],
    [
      ["for=192.0.2.1", 'for="198.51.100.17"'],
      ["198.51.100.17", "192.0.2.1"],
    ],
    ["for=192.0.2.1,, for=198.51.100.17,", ["198.51.100.17", "192.0.2.1"]],
    [",for=192.0.2.1", ["192.0.2.1"]],
    [";for=192.0.2.1;;proto=http;", ["192.0.2.1"]],
    ['host="a,b;for=10.0.0.1";for=192.0.2.1', ["192.0.2.1"]],
    ['for=192.0.2.1, for=192.0.2.2;host="a,\\",for=10.0.0.1"', ["192.0.2.2", "192.0.2.1"]],
    ['for=192.0.2.1, for=192.0.2.2;host="\\\\"', ["192.0.2.2", "192.0.2.1"]],
    ["for=192.0.2.1, for=unknown, for=192.0.2.3", ["192.0.2.3"]],
    ["for=192.0.2.1, for=_hidden", []],
    ["for=192.0.2.1, proto=https", []],
    ["for=192.0.2.1;for=192.0.2.2", []],
    ['for="";for=192.0.2.2', []],
    ["for=192.0.2.1 junk", []],
    ["for =192.0.2.1", []],
    ["for=", []],
    ["for", []],
    ["192.0.2.1", []],
    ['for="192.0.2.1', []],
    ["before=192.0.2.1", []],
    [7, []],
  ])("with the value %j has the addresses %j", (field, visited) => {
    expect(addresses("forwarded", field)).toEqual(visited)
  })

  it("is read up to the proxies' entries, whatever a client wrote before them", () => {
    const hostile = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom('"', "\\", ",", ";", "=", "for", " ", "10.0.0.1", "[") }),
    )
    const own = fc.constantFrom(
      "for=192.0.2.2",
      'for="192.0.2.2:80";by="[2001:db8::9]"',
      'by="a\\",b";for=192.0.2.2',
    )
    fc.assert(
      fc.property(hostile, own, (prefix, element) => {
        expect(addresses("forwarded", `${prefix}, ${element}`, 1)).toEqual(["192.0.2.2"])
        expect(addresses("forwarded", [prefix, element], 1)).toEqual(["192.0.2.2"])
      }),
    )
  })

  it("is read in linear time, whatever invalid input it contains", () => {
    const shapes = [" ", "\t;", '"', '\\"', "a=", "for=", ";", 'for="\\', "x"]
    for (const shape of shapes) {
      const rubbish = shape.repeat(Math.ceil(1_000_000 / shape.length))
      expect(addresses("forwarded", `${rubbish} \u0000`)).toEqual([])
      expect(addresses("forwarded", `${rubbish},for=192.0.2.2`)).toEqual(["192.0.2.2"])
    }
  })
})
