import { describe, expect, it } from "vitest"
import type { ReadLogOptions } from "./log.ts"
import { readInput } from "./testing/read-all.ts"

const IPV6 = "2001:db8:4538:1:bcf4:5264:e01c:f215"
const TIME = "2025-06-03T08:00:00Z"
const CLF = "[03/Jun/2025:08:00:00 +0000]"
const REQUEST = '"GET /a HTTP/1.1" 200'

/** A format, and the line in which it logs an address. */
interface AddressFormat {
  readonly name: string
  readonly options?: ReadLogOptions
  line(address: string): string
}

const json = (line: object): string => JSON.stringify(line)
/** Formats that log the address alone. */
const bare: readonly AddressFormat[] = [
  { name: "combined", line: (ip) => `${ip} - - ${CLF} ${REQUEST} 5 "-" "test"` },
  { name: "common", line: (ip) => `${ip} - - ${CLF} ${REQUEST} 5` },
  { name: "vhost_combined", line: (ip) => `www.example.com:443 ${ip} - - ${CLF} ${REQUEST} 5 "-" "test"` },
  {
    name: "nginx",
    options: { format: '$remote_addr $time_iso8601 "$request"' },
    line: (ip) => `${ip} ${TIME} "GET /a HTTP/1.1"`,
  },
  { name: "Apache", options: { format: '%a %t "%r" %>s' }, line: (ip) => `${ip} ${CLF} ${REQUEST}` },
  {
    name: "CloudFront",
    line: (ip) =>
      `#Fields: date time c-ip cs-method cs-uri-stem sc-status\n2025-06-03\t08:00:00\t${ip}\tGET\t/a\t200`,
  },
  {
    name: "Caddy",
    line: (ip) =>
      json({
        ts: 1748937600,
        request: { client_ip: ip, method: "GET", uri: "/a" },
        status: 200,
        duration: 0,
      }),
  },
  {
    name: "GCP",
    line: (ip) =>
      json({ httpRequest: { requestMethod: "GET", requestUrl: "/a", remoteIp: ip }, timestamp: TIME }),
  },
  {
    name: "pino-http, scanned",
    line: (ip) =>
      json({ time: 1748937600000, req: { method: "GET", url: "/a", remoteAddress: ip }, responseTime: 0 }),
  },
  {
    name: "pino-http, parsed",
    line: (ip) =>
      json({
        time: 1748937600000,
        req: { method: "GET", url: "/a", headers: { host: "a" }, remoteAddress: ip },
        responseTime: 0,
      }),
  },
  {
    name: "JSON lines",
    options: { map: { time: "t", ip: "ip" } },
    line: (ip) => json({ t: TIME, ip }),
  },
]

/** Formats that log the address with a port. */
const withPort: readonly AddressFormat[] = [
  {
    name: "ALB",
    line: (client) =>
      `h2 2025-06-03T08:00:00.500000Z app/x ${client} 10.0.0.1:80 0 0 0 200 200 1 1 "GET https://a:443/a HTTP/2.0" ` +
      `"test" - - arn "r" "d" "c" 0 ${TIME} "forward"`,
  },
  {
    name: "ELB",
    line: (client) =>
      `2025-06-03T08:00:00.500000Z shop ${client} 10.0.0.1:80 0.1 0.2 0.3 200 200 0 29 "GET http://a:80/a HTTP/1.1" ` +
      '"curl/8" - -',
  },
  {
    name: "nginx",
    options: { format: '$remote_addr:$remote_port $time_iso8601 "$request"' },
    line: (client) => `${client} ${TIME} "GET /a HTTP/1.1"`,
  },
  {
    name: "nginx, after a value that clients choose",
    options: { format: "$time_iso8601 $request_uri $remote_addr:$remote_port" },
    line: (client) => `${TIME} /a ${client}`,
  },
  {
    name: "Apache",
    options: { format: '%a:%{remote}p %t "%r" %>s' },
    line: (client) => `${client} ${CLF} ${REQUEST}`,
  },
  {
    name: "Traefik, whose line has only the address with a port",
    line: (client) =>
      json({
        ClientAddr: client,
        RequestMethod: "GET",
        RequestPath: "/a",
        StartUTC: TIME,
        DownstreamStatus: 200,
      }),
  },
  {
    name: "Caddy before version 2.5",
    line: (client) =>
      json({
        ts: 1748937600,
        request: { remote_addr: client, method: "GET", uri: "/a" },
        status: 200,
        duration: 0,
      }),
  },
  {
    name: "JSON lines",
    options: { map: { time: "t", ip: "ip" } },
    line: (client) => json({ t: TIME, ip: client }),
  },
]

const addresses = async ({ line, options }: AddressFormat, address: string): Promise<readonly unknown[]> => {
  const { records, summary } = await readInput(`${line(address)}\n`, options)
  return [
    ...records.map(({ remoteAddress }) => remoteAddress ?? "none"),
    ...Array(summary.unparsed).fill("unparsed"),
  ]
}

describe.each(bare)("the address of $name", (format) => {
  it.each([
    ["192.0.2.1", "192.0.2.1"],
    [IPV6, IPV6],
    ["2001:DB8::1", "2001:DB8::1"],
    ["::ffff:192.0.2.1", "::ffff:192.0.2.1"],
    ["[2001:db8::1]", "2001:db8::1"],
    ["fe80::1%eth0", "fe80::1"],
    ["fe80::1%en0.100", "fe80::1"],
  ])("may be written as %s", async (written, read) => {
    expect(await addresses(format, written)).toEqual([read])
  })

  it.each(["999.0.2.1", "192.0.2.01", "192.0.2", "1:2", "ab::cd::ef", `${IPV6}:1:2`, "fe80::1%", "face"])(
    "cannot be %s, which only looks like an address",
    async (written) => {
      // The line may be unparsed, or its format unknown. The line must never become a request of a client without an
      // address.
      const read = await addresses(format, written).catch(() => ["unparsed"])
      expect(read.filter((each) => each !== "unparsed")).toEqual([])
    },
  )
})

describe.each(withPort)("the address and port of $name", (format) => {
  it.each([
    ["192.0.2.1:50718", "192.0.2.1"],
    ["[2001:db8::1]:50718", "2001:db8::1"],
    [`${IPV6}:50718`, IPV6],
    ["2001:db8:5::1:50718", "2001:db8:5::1"],
    ["::ffff:192.0.2.1:443", "::ffff:192.0.2.1"],
    ["fe80::1%eth0:443", "fe80::1"],
  ])("may be written as %s", async (written, read) => {
    expect(await addresses(format, written)).toEqual([read])
  })
})

it("a load balancer's port is not mistaken for a part of a shortened address", async () => {
  for (const format of withPort.slice(0, 4))
    expect(await addresses(format, "2001:db8::1:443")).toEqual(["2001:db8::1"])
})

describe("a client without an address", () => {
  it.each([
    ["combined", "-"],
    ["combined", "unix:"],
    ["combined", "unknown"],
    ["JSON lines", "-"],
    ["JSON lines", "unknown"],
    ["JSON lines", "unix:"],
    ["Caddy", "@"],
    ["Caddy", ""],
  ])("may be written in %s as %j", async (name, written) => {
    const format = bare.find((each) => each.name === name) as AddressFormat
    expect(await addresses(format, written)).toEqual(["none"])
  })
})
