import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { compileClientAddress } from "./client-address.ts"
import type { ClientAddressOptions } from "./client-address-options.ts"
import type { RequestFacts } from "./request.ts"

const NEVER = (): void => expect.unreachable("no warning is due")

/** Returns facts as an untyped framework might provide them. */
function facts(remoteAddress: unknown, headers?: unknown): RequestFacts {
  return { remoteAddress, headers } as RequestFacts
}

function client(
  options: ClientAddressOptions,
  remoteAddress: unknown,
  headers?: unknown,
): string | undefined {
  return compileClientAddress(options, NEVER)(facts(remoteAddress, headers))
}

const xff = (list: unknown): object => ({ "x-forwarded-for": list })

describe("the socket's peer", () => {
  it.each([
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["::FFFF:c000:207", "192.0.2.7"],
    ["2001:DB8::1", "2001:db8::1"],
    ["fe80::1%eth0", "fe80::1"],
    ["", undefined],
    ["undefined", undefined],
    [undefined, undefined],
    [null, undefined],
    [7, undefined],
    [["192.0.2.7"], undefined],
  ])("with the address %j is the client %j when no proxy is trusted", (remoteAddress, expected) => {
    expect(client({}, remoteAddress)).toBe(expected)
    expect(client({}, remoteAddress, {})).toBe(expected)
    expect(client({ trustedProxies: 0 }, remoteAddress, xff("198.51.100.1"))).toBe(expected)
    expect(client({ trustedProxies: [] }, remoteAddress, xff("198.51.100.1"))).toBe(expected)
    expect(client({ trustedProxies: ["203.0.113.1"] }, remoteAddress, xff("198.51.100.1"))).toBe(expected)
  })
})

describe("a number of trusted hops", () => {
  const list = "192.0.2.1, 192.0.2.2, 192.0.2.3"
  it.each<[number, unknown, unknown, string | undefined]>([
    [1, "10.0.0.1", list, "192.0.2.3"],
    [2, "10.0.0.1", list, "192.0.2.2"],
    [3, "10.0.0.1", list, "192.0.2.1"],
    [4, "10.0.0.1", list, "192.0.2.1"],
    [100, "10.0.0.1", list, "192.0.2.1"],
    [2, "10.0.0.1", ["192.0.2.1", "192.0.2.2, 192.0.2.3"], "192.0.2.2"],
    [1, "10.0.0.1", undefined, "10.0.0.1"],
    [1, "10.0.0.1", "", "10.0.0.1"],
    [1, "::ffff:10.0.0.1", "::ffff:192.0.2.3", "192.0.2.3"],
    [2, "10.0.0.1", "192.0.2.1, garbage, 192.0.2.3", "192.0.2.3"],
    [1, "10.0.0.1", "192.0.2.1, garbage", "10.0.0.1"],
    [1, "10.0.0.1", "127.1", "10.0.0.1"],
    [1, "10.0.0.1", "[2001:DB8::1]:443", "2001:db8::1"],
    // A Unix socket does not have an address, but counts as a hop.
    [1, undefined, "192.0.2.3", "192.0.2.3"],
    [1, undefined, undefined, undefined],
  ])(
    "of %j, with the peer %j and X-Forwarded-For %j, leads to the client %j",
    (trustedProxies, peer, field, expected) => {
      expect(client({ trustedProxies }, peer, xff(field))).toBe(expected)
    },
  )
})

describe("the addresses of trusted proxies", () => {
  const trustedProxies = ["10.0.0.0/8", "2001:db8:ffff::/48"]
  it.each<[unknown, unknown, string | undefined]>([
    ["10.0.0.1", "192.0.2.1, 192.0.2.2", "192.0.2.2"],
    ["10.0.0.1", "192.0.2.1, 192.0.2.2, 10.0.0.2, 10.0.0.3", "192.0.2.2"],
    ["10.0.0.1", "10.0.0.4, 10.0.0.3", "10.0.0.4"],
    ["10.0.0.1", ["192.0.2.1", "192.0.2.2", "10.0.0.3"], "192.0.2.2"],
    ["::ffff:10.0.0.1", "192.0.2.2", "192.0.2.2"],
    ["10.0.0.1", "192.0.2.2, ::ffff:a00:2", "192.0.2.2"],
    ["2001:db8:ffff::1", "192.0.2.2", "192.0.2.2"],
    ["2001:db8:fffe::1", "192.0.2.2", "2001:db8:fffe::1"],
    ["11.0.0.1", "192.0.2.2", "11.0.0.1"],
    ["10.0.0.1", "192.0.2.1, unknown, 10.0.0.2", "10.0.0.2"],
    ["10.0.0.1", undefined, "10.0.0.1"],
    ["10.0.0.1", {}, "10.0.0.1"],
    [undefined, "192.0.2.2", undefined],
    ["nonsense", "192.0.2.2", undefined],
  ])("with the peer %j and X-Forwarded-For %j lead to the client %j", (peer, field, expected) => {
    expect(client({ trustedProxies }, peer, xff(field))).toBe(expected)
  })

  it.each([
    ["loopback", ["127.0.0.1", "127.9.9.9", "::1"], ["10.0.0.1", "::2"]],
    ["linklocal", ["169.254.1.1", "fe80::1", "febf::1"], ["169.255.0.1", "fec0::1"]],
    [
      "uniquelocal",
      ["10.1.1.1", "172.31.0.1", "192.168.9.9", "fd00::1"],
      ["172.32.0.1", "192.169.0.1", "fe00::1"],
    ],
  ])("with the name %j include %j and not %j", (name, proxies, others) => {
    for (const proxy of proxies)
      expect(client({ trustedProxies: [name] }, proxy, xff("192.0.2.2"))).toBe("192.0.2.2")
    for (const other of others)
      expect(client({ trustedProxies: [name] }, other, xff("192.0.2.2"))).toBe(other)
  })

  it("never lead to an entry on the left of an untrusted address", () => {
    const proxy = fc.constantFrom("10.0.0.2", "10.200.0.3", "2001:db8:ffff::7")
    fc.assert(
      fc.property(fc.string(), fc.array(proxy, { maxLength: 5 }), (forged, appended) => {
        const headers = xff([forged, "192.0.2.2", ...appended].join(", "))
        expect(client({ trustedProxies }, "10.0.0.1", headers)).toBe("192.0.2.2")
      }),
    )
  })
})

describe("clientIpHeader", () => {
  const both = { "x-forwarded-for": "192.0.2.1", forwarded: "for=192.0.2.2", "cf-connecting-ip": "192.0.2.3" }
  it.each<[string | undefined, object | undefined, string]>([
    [undefined, both, "192.0.2.1"],
    [undefined, { forwarded: 'for="[2001:db8::1]:80", for=192.0.2.2' }, "192.0.2.2"],
    [undefined, {}, "10.0.0.1"],
    [undefined, undefined, "10.0.0.1"],
    ["forwarded", both, "192.0.2.2"],
    ["Forwarded", both, "192.0.2.2"],
    ["forwarded", { "x-forwarded-for": "192.0.2.1" }, "10.0.0.1"],
    ["forwarded", undefined, "10.0.0.1"],
    ["X-Forwarded-For", both, "192.0.2.1"],
    [
      "x-forwarded-for",
      { forwarded: "for=192.0.2.2", "x-forwarded-for": "192.0.2.9, 192.0.2.1" },
      "192.0.2.1",
    ],
    ["x-forwarded-for", { forwarded: "for=192.0.2.2" }, "10.0.0.1"],
    ["CF-Connecting-IP", both, "192.0.2.3"],
    ["cf-connecting-ip", { "cf-connecting-ip": ["192.0.2.3"] }, "192.0.2.3"],
    ["cf-connecting-ip", { "cf-connecting-ip": " [2001:DB8::1]:443 " }, "2001:db8::1"],
    ["cf-connecting-ip", { "cf-connecting-ip": ["192.0.2.3", "192.0.2.4"] }, "10.0.0.1"],
    ["cf-connecting-ip", { "cf-connecting-ip": "192.0.2.3, 192.0.2.4" }, "10.0.0.1"],
    ["cf-connecting-ip", { "cf-connecting-ip": "" }, "10.0.0.1"],
    ["cf-connecting-ip", { "cf-connecting-ip": 7 }, "10.0.0.1"],
    ["cf-connecting-ip", { "x-forwarded-for": "192.0.2.1" }, "10.0.0.1"],
    ["cf-connecting-ip", undefined, "10.0.0.1"],
  ])("set to %j, with the headers %j, leads to the client %j", (clientIpHeader, headers, expected) => {
    expect(client({ trustedProxies: 1, clientIpHeader }, "10.0.0.1", headers)).toBe(expected)
    expect(client({ trustedProxies: ["10.0.0.1"], clientIpHeader }, "10.0.0.1", headers)).toBe(expected)
  })

  it("is read only if the peer is a trusted proxy", () => {
    const options = { trustedProxies: ["10.0.0.1"], clientIpHeader: "cf-connecting-ip" }
    expect(client(options, "10.0.0.2", both)).toBe("10.0.0.2")
    expect(client({ trustedProxies: ["10.0.0.1"] }, "10.0.0.2", both)).toBe("10.0.0.2")
  })
})

describe("a forwarded header without trusted proxies", () => {
  it.each([
    [{ "x-forwarded-for": "192.0.2.1" }, "x-forwarded-for"],
    [{ forwarded: "for=192.0.2.1" }, "forwarded"],
    [{ forwarded: "for=192.0.2.1", "x-forwarded-for": "" }, "x-forwarded-for"],
  ])("is reported once, and ignored: %j", (headers, name) => {
    const told: string[] = []
    const read = compileClientAddress({}, (header) => told.push(header))
    expect(read(facts("198.51.100.1", {}))).toBe("198.51.100.1")
    expect(read(facts("198.51.100.1"))).toBe("198.51.100.1")
    expect(told).toEqual([])
    expect(read(facts("198.51.100.1", headers))).toBe("198.51.100.1")
    expect(read(facts("198.51.100.1", headers))).toBe("198.51.100.1")
    expect(told).toEqual([name])
  })
})

describe("a forwarded header without trusted proxies, as on a serverless platform,", () => {
  const CLIENT = "203.0.113.7"
  it.each([
    ["the peer alone", CLIENT, CLIENT],
    ["the peer alone, in another spelling", "2001:db8::1", "2001:DB8:0::1"],
    ["the peer on the left of the gateway's own network", CLIENT, `${CLIENT}, 130.176.1.1`],
    ["the peer on the right of what the client wrote", CLIENT, `198.51.100.1, ${CLIENT}`],
    ["only a private peer, in a test", "127.0.0.1", "127.0.0.1, 127.0.0.2"],
  ])("is not reported if it lists %s", (_what, peer, list) => {
    expect(client({}, peer, xff(list))).toBe(client({}, peer))
  })

  it.each([
    ["a proxy of the app, which the balancer lists", "127.0.0.1", `${CLIENT}, 127.0.0.1`],
    ["a private proxy, which the balancer lists", "10.0.0.1", `${CLIENT}, 10.0.0.1`],
    ["the content delivery network, which the gateway lists", "130.176.1.1", `${CLIENT}, 130.176.1.1`],
    ["a proxy that is not listed", "198.51.100.1", CLIENT],
    ["unknown", undefined, CLIENT],
    ["listed by an invalid entry", CLIENT, "unknown"],
  ])("is reported if the peer is %s", (_what, peer, list) => {
    const told: string[] = []
    compileClientAddress({}, (header) => told.push(header))(facts(peer, xff(list)))
    expect(told).toEqual(["x-forwarded-for"])
  })
})

describe("with trustedProxies, the first 100 requests", () => {
  const PROXY = "10.0.0.1"
  const FROM_PROXY = facts(PROXY, {})
  /** Sends groups of requests, and returns the codes that are reported after each group. */
  async function told(
    options: ClientAddressOptions,
    ...groups: (readonly [times: number, request: RequestFacts])[]
  ): Promise<string[]> {
    const codes: string[] = []
    const read = compileClientAddress(options, NEVER, (code, message) => codes.push(`${code} ${message}`))
    for (const [times, request] of groups) {
      for (let i = 0; i < times; i++) {
        // Two rules read the address of each request.
        for (let rules = 0; rules < 2; rules++) read(request)
        await Promise.resolve()
      }
    }
    return codes
  }
  const MISSING = expect.stringMatching(/^SLUICE_FORWARDED_HEADER_MISSING trustedProxies is set, but \d+ of/)

  it.each<[string, ClientAddressOptions, RequestFacts]>([
    ["no header", { trustedProxies: 1 }, FROM_PROXY],
    ["no headers at all", { trustedProxies: [PROXY] }, facts(PROXY)],
    ["no header, over a Unix socket", { trustedProxies: 1 }, facts(undefined, {})],
    ["an invalid header", { trustedProxies: 1 }, facts(PROXY, xff("unknown"))],
    ["only Forwarded, of the wrong kind", { trustedProxies: 1 }, facts(PROXY, { forwarded: "for=_hidden" })],
    [
      "another header than clientIpHeader",
      { trustedProxies: 1, clientIpHeader: "x-real-ip" },
      facts(PROXY, xff("192.0.2.7")),
    ],
    [
      "another list than clientIpHeader",
      { trustedProxies: 1, clientIpHeader: "forwarded" },
      facts(PROXY, xff("192.0.2.7")),
    ],
  ])("of a trusted peer with %s are reported once", async (_what, options, request) => {
    expect(await told(options, [99, request])).toEqual([])
    expect(await told(options, [300, request])).toEqual([MISSING])
  })

  it("are reported even if a few of them have the header, which clients can send themselves", async () => {
    const forged = facts(PROXY, xff("192.0.2.7"))
    expect(await told({ trustedProxies: 1 }, [5, forged], [95, FROM_PROXY])).toEqual([
      expect.stringContaining(
        "95 of the first 100 requests from a trusted address had no valid header x-forwarded-for",
      ),
    ])
    expect(await told({ trustedProxies: 1 }, [6, forged], [300, FROM_PROXY])).toEqual([])
  })

  it.each<[string, RequestFacts]>([
    ["sent to the path of a health check", { ...FROM_PROXY, url: "/api/_health?full=1" }],
    ["sent by a readiness probe", { ...FROM_PROXY, url: "/readyz" }],
    ["sent by a load balancer", facts(PROXY, { "user-agent": "ELB-HealthChecker/2.0" })],
    ["sent by Kubernetes", facts(PROXY, { "user-agent": "kube-probe/1.31" })],
    ["sent with the header", facts(PROXY, xff("192.0.2.7"))],
    ["sent with Forwarded", facts(PROXY, { forwarded: "for=192.0.2.7" })],
    ["sent by other peers", facts("192.0.2.1", {})],
  ])("are not reported if they are %s", async (_what, request) => {
    expect(await told({ trustedProxies: [PROXY] }, [300, request])).toEqual([])
  })

  it.each(["/livestream/1", "/orders/status", "/monitors/3", "/readymade", "/healthy-food", "/ping-pong"])(
    "are reported if their path is %s, which is not the path of a health check",
    async (url) => {
      expect(await told({ trustedProxies: 1 }, [100, { ...FROM_PROXY, url }])).toEqual([MISSING])
    },
  )

  it("are counted without health checks, and a query does not make a request a health check", async () => {
    const health = { ...FROM_PROXY, url: "/healthz" }
    const search = { ...FROM_PROXY, url: "/shipping/deliveries?status=ready" }
    expect(await told({ trustedProxies: 1 }, [200, health], [99, search])).toEqual([])
    expect(await told({ trustedProxies: 1 }, [200, health], [100, search])).toEqual([MISSING])
  })

  it("are reported if an untrusted proxy forwards nearly all of them", async () => {
    const options = { trustedProxies: ["127.0.0.1"] }
    const forwarded = facts("172.17.0.1", xff("192.0.2.7"))
    expect(await told(options, [99, forwarded])).toEqual([])
    expect(await told(options, [5, facts("172.17.0.1", {})], [300, forwarded])).toEqual([
      expect.stringMatching(/^SLUICE_PROXY_NOT_TRUSTED 95 of .* came from 172\.17\.0\.1\. Add/),
    ])
    expect(await told(options, [1, facts("127.0.0.1", xff("192.0.2.8"))], [300, forwarded])).toEqual([])
  })
})

describe("the reader of client addresses", () => {
  it("never throws for any input, and returns an address or undefined", () => {
    const anything = fc.record(
      {
        "x-forwarded-for": fc.anything(),
        forwarded: fc.anything(),
        "x-real-ip": fc.anything(),
      },
      { requiredKeys: [] },
    )
    const readers = [
      compileClientAddress({}, () => undefined),
      compileClientAddress({ trustedProxies: 3 }, NEVER),
      compileClientAddress({ trustedProxies: ["loopback"] }, NEVER),
      compileClientAddress({ trustedProxies: 1, clientIpHeader: "x-real-ip" }, NEVER),
    ]
    fc.assert(
      fc.property(
        fc.oneof(fc.ipV4(), fc.ipV6(), fc.anything()),
        fc.oneof(anything, fc.anything()),
        (peer, headers) => {
          for (const read of readers) expect(read(facts(peer, headers)) ?? "::").toMatch(/^[0-9a-f.:]+$/)
        },
      ),
    )
  })
})

describe("the names of networks", () => {
  const CLOUDFLARE = "162.158.1.2"
  const OTHER = "172.64.0.9"
  it.each<[proxies: string[], peer: string, list: string, client: string]>([
    [["private"], "10.1.1.1", "192.0.2.7", "192.0.2.7"],
    [["private"], "192.168.1.1", "192.0.2.7, 172.16.0.1, fd00::1", "192.0.2.7"],
    [["private"], "127.0.0.1", "192.0.2.7", "127.0.0.1"],
    [["loopback"], "127.0.0.1", "192.0.2.7", "192.0.2.7"],
    [["10.0.0.0/255.0.0.0"], "10.1.1.1", "192.0.2.7", "192.0.2.7"],
    [["cloudflare"], CLOUDFLARE, "192.0.2.7", "192.0.2.7"],
    [["cloudflare"], "2606:4700::7", "192.0.2.7", "192.0.2.7"],
    [["cloudflare"], "198.51.100.1", "192.0.2.7", "198.51.100.1"],
    [["cloudfront"], "15.158.3.4", "198.51.100.66, 192.0.2.7", "192.0.2.7"],
    [["fastly"], "151.101.3.4", "192.0.2.7", "192.0.2.7"],
    // A client of Cloudflare's VPN has an address in Cloudflare's networks, and may write any entry before that
    // address.
    [["cloudflare"], CLOUDFLARE, `198.51.100.66, ${OTHER}`, OTHER],
    [["private", "cloudflare"], "10.0.0.1", `198.51.100.66, ${OTHER}, ${CLOUDFLARE}`, OTHER],
    [["private", "cloudflare"], "10.0.0.1", `192.0.2.7, ${CLOUDFLARE}, 10.0.0.2`, "192.0.2.7"],
    // Networks of two different providers are proxies, and so are networks that the app lists itself.
    [["cloudflare", "fastly"], "151.101.3.4", `192.0.2.7, ${CLOUDFLARE}`, "192.0.2.7"],
    [["162.158.0.0/15", "172.64.0.0/13"], CLOUDFLARE, `192.0.2.7, ${OTHER}`, "192.0.2.7"],
  ])(
    "such as %j, with the peer %j and X-Forwarded-For %j, lead to the client %j",
    (trustedProxies, peer, list, expected) => {
      expect(client({ trustedProxies }, peer, xff(list))).toBe(expected)
    },
  )

  it("allow only their own proxies to report a client in the provider's header", () => {
    const options = { trustedProxies: ["cloudflare"], clientIpHeader: "cf-connecting-ip" }
    const headers = { "cf-connecting-ip": OTHER, ...xff("198.51.100.66") }
    expect(client(options, CLOUDFLARE, headers)).toBe(OTHER)
    expect(client(options, "198.51.100.1", headers)).toBe("198.51.100.1")
  })
})
