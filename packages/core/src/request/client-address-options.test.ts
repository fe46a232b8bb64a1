import { describe, expect, it } from "vitest"
import { InvalidOptionError } from "../ground/errors.ts"
import { compileClientAddress } from "./client-address.ts"
import { clientAddressProblems } from "./client-address-options.ts"

describe("the options for client addresses", () => {
  it.each<[object]>([
    [{}],
    [{ trustedProxies: undefined, clientIpHeader: undefined, ipv6Prefix: undefined }],
    [{ trustedProxies: 0 }],
    [{ trustedProxies: 100, ipv6Prefix: 1 }],
    [{ trustedProxies: [], ipv6Prefix: 128 }],
    [
      {
        trustedProxies: ["loopback", "linklocal", "uniquelocal", "192.0.2.1", "10.0.0.0/8", "2001:db8::/32"],
      },
    ],
    [{ trustedProxies: 1, clientIpHeader: "CF-Connecting-IP" }],
    [{ trustedProxies: ["private", "cloudflare", "cloudfront", "fastly", "10.0.0.0/255.0.0.0"] }],
    [{ ipv6Prefix: {} }],
    [{ ipv6Prefix: { default: 56, "2001:db8::/32": 48, "2001:db8:ff::/48": 48, "2001:db8::1": 128 } }],
  ])("%j are valid", (options) => {
    expect(clientAddressProblems(options)).toEqual([])
  })

  it.each<[object, readonly (readonly [path: string, message: string])[]]>([
    [{ trustedProxies: -1 }, [["trustedProxies", "-1 is not a valid value for trustedProxies"]]],
    [{ trustedProxies: 101 }, [["trustedProxies", "101 is not a valid value for trustedProxies"]]],
    [{ trustedProxies: 1.5 }, [["trustedProxies", "1.5 is not a valid value for trustedProxies"]]],
    [
      { trustedProxies: Number.NaN },
      [
        [
          "trustedProxies",
          "NaN is not a valid value for trustedProxies; it was computed from a missing value or from text",
        ],
      ],
    ],
    [
      { trustedProxies: true },
      [["trustedProxies", "true is not a valid value for trustedProxies; use their number, such as 1"]],
    ],
    [
      { trustedProxies: () => true },
      [
        [
          "trustedProxies",
          "a function is not a valid value for trustedProxies; use a field instead, such as (req) => addressGroup(req.ip)",
        ],
      ],
    ],
    [
      { trustedProxies: "loopback" },
      [["trustedProxies", '"loopback" is not a valid value for trustedProxies; use ["loopback"]']],
    ],
    [{ trustedProxies: null }, [["trustedProxies", "null is not a valid value for trustedProxies"]]],
    [
      { trustedProxies: ["10.0.0.0/8", "10.0.0.0/33", 7, "toString"] },
      [
        ["trustedProxies[1]", '"10.0.0.0/33" is not an address'],
        ["trustedProxies[2]", "7 is not an address"],
        ["trustedProxies[3]", '"toString" is not an address'],
      ],
    ],
    [
      { trustedProxies: ["0.0.0.0/0", "::/0"] },
      [
        ["trustedProxies[0]", '"0.0.0.0/0" would let every client choose its own address'],
        ["trustedProxies[1]", '"::/0" would let every client choose its own address'],
      ],
    ],
    [
      { trustedProxies: { a: { b: 1 } } },
      [["trustedProxies", '{"a":{"b":1}} is not a valid value for trustedProxies']],
    ],
    [{ trustedProxies: ["x".repeat(58)] }, [["trustedProxies[0]", `"${"x".repeat(58)}" is not an address`]]],
    [{ trustedProxies: ["x".repeat(100)] }, [["trustedProxies[0]", `"${"x".repeat(58)}… is not an address`]]],
    [{ trustedProxies: 1, clientIpHeader: "" }, [["clientIpHeader", '"" is not the name of a header']]],
    [{ trustedProxies: 1, clientIpHeader: "x y" }, [["clientIpHeader", '"x y" is not the name of a header']]],
    [{ trustedProxies: 1, clientIpHeader: 7 }, [["clientIpHeader", "7 is not the name of a header"]]],
    ...[undefined, 0, []].map((trustedProxies): [object, [string, string][]] => [
      { trustedProxies, clientIpHeader: "x-real-ip" },
      [["clientIpHeader", '"x-real-ip" is only read from a trusted proxy, and no proxy is trusted']],
    ]),
    [{ ipv6Prefix: 0 }, [["ipv6Prefix", "0 is not a prefix length"]]],
    [{ ipv6Prefix: 129 }, [["ipv6Prefix", "129 is not a prefix length"]]],
    [{ ipv6Prefix: "64" }, [["ipv6Prefix", '"64" is not a prefix length']]],
    [{ ipv6Prefix: null }, [["ipv6Prefix", "null is not a prefix length"]]],
    [{ ipv6Prefix: [64] }, [["ipv6Prefix", "[64] is not a prefix length"]]],
    [
      {
        ipv6Prefix: {
          default: 0,
          "2001:db8::/32": 31,
          "2001:DB8::1/32": 48,
          "10.0.0.0/8": 24,
          all: 64,
          "::/0": 0,
          "2001:db9::/32": "48",
        },
      },
      [
        ['ipv6Prefix["default"]', "0 is not a prefix length"],
        ['ipv6Prefix["2001:db8::/32"]', "31 is not a prefix length"],
        ['ipv6Prefix["2001:DB8::1/32"]', '"2001:DB8::1/32" is the same network as "2001:db8::/32"'],
        ['ipv6Prefix["10.0.0.0/8"]', '"10.0.0.0/8" is not an IPv6 network'],
        ['ipv6Prefix["all"]', '"all" is not an IPv6 network'],
        ['ipv6Prefix["::/0"]', "0 is not a prefix length"],
        ['ipv6Prefix["2001:db9::/32"]', '"48" is not a prefix length'],
      ],
    ],
  ])("%j are rejected with every problem", (options, expected) => {
    const problems = clientAddressProblems(options)
    expect(problems.map(({ path, message }) => [path, message])).toEqual(expected)
    for (const { accepted } of problems) expect(accepted).toBeTruthy()
    expect(() => compileClientAddress(options as object, () => undefined)).toThrow(InvalidOptionError)
  })
})
