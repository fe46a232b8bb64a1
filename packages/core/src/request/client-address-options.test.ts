import { describe, expect, it } from "vitest"
import { InvalidOptionError } from "../ground/errors.ts"
import { compileClientAddress } from "./client-address.ts"
import { clientAddressProblems } from "./client-address-options.ts"

describe("the options", () => {
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
  ])("%j are right", (options) => {
    expect(clientAddressProblems(options)).toEqual([])
  })

  it.each<[object, readonly (readonly [path: string, message: string])[]]>([
    [{ trustedProxies: -1 }, [["trustedProxies", "-1 names no proxies"]]],
    [{ trustedProxies: 101 }, [["trustedProxies", "101 names no proxies"]]],
    [{ trustedProxies: 1.5 }, [["trustedProxies", "1.5 names no proxies"]]],
    [{ trustedProxies: Number.NaN }, [["trustedProxies", "NaN names no proxies"]]],
    [{ trustedProxies: true }, [["trustedProxies", "true names no proxies"]]],
    [{ trustedProxies: "loopback" }, [["trustedProxies", '"loopback" names no proxies']]],
    [{ trustedProxies: null }, [["trustedProxies", "null names no proxies"]]],
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
        ["trustedProxies[0]", '"0.0.0.0/0" trusts every client to name its own address'],
        ["trustedProxies[1]", '"::/0" trusts every client to name its own address'],
      ],
    ],
    [{ trustedProxies: { a: { b: 1 } } }, [["trustedProxies", "{ a: [Object] } names no proxies"]]],
    [{ trustedProxies: ["x".repeat(58)] }, [["trustedProxies[0]", `"${"x".repeat(58)}" is not an address`]]],
    [
      { trustedProxies: ["x".repeat(100)] },
      [["trustedProxies[0]", `"${"x".repeat(59)}... is not an address`]],
    ],
    [{ trustedProxies: 1, clientIpHeader: "" }, [["clientIpHeader", '"" is not the name of a header']]],
    [{ trustedProxies: 1, clientIpHeader: "x y" }, [["clientIpHeader", '"x y" is not the name of a header']]],
    [{ trustedProxies: 1, clientIpHeader: 7 }, [["clientIpHeader", "7 is not the name of a header"]]],
    ...[undefined, 0, []].map((trustedProxies): [object, [string, string][]] => [
      { trustedProxies, clientIpHeader: "x-real-ip" },
      [["clientIpHeader", '"x-real-ip" is believed only from a trusted proxy, and there is none']],
    ]),
    [{ ipv6Prefix: 0 }, [["ipv6Prefix", "0 is not a prefix length"]]],
    [{ ipv6Prefix: 129 }, [["ipv6Prefix", "129 is not a prefix length"]]],
    [{ ipv6Prefix: "64" }, [["ipv6Prefix", '"64" is not a prefix length']]],
  ])("%j are wrong, and all of it is said", (options, expected) => {
    const problems = clientAddressProblems(options)
    expect(problems.map(({ path, message }) => [path, message])).toEqual(expected)
    for (const { accepted } of problems) expect(accepted).toBeTruthy()
    expect(() => compileClientAddress(options as object, () => undefined)).toThrow(InvalidOptionError)
  })
})
