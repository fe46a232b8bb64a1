import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { ReadLogOptions } from "../log.ts"
import { facts, readInput } from "../testing/read-all.ts"
import { apacheEscaped, clf, nginxEscaped, standardLine, type Written } from "../testing/write-lines.ts"

/** Text as clients send it: any bytes, each as one character. */
const bytes = fc.string({ unit: fc.integer({ min: 1, max: 255 }).map((code) => String.fromCharCode(code)) })
/** A value of a header. Servers write "-" for a header that is absent. */
const value = fc.option(
  bytes.filter((text) => text !== "" && text !== "-" && text !== '""'),
  { nil: undefined },
)
const plain = fc.string({ unit: fc.constantFrom(..."abcXYZ019/?&=.%-[]:"), minLength: 1 })
const url = fc.oneof(
  fc.constantFrom("/", "/login", "/a?b=1&c=2", "*"),
  plain.map((text) => `/${text}`),
  bytes.filter((text) => !/\s/.test(text)).map((text) => `/${text}`),
)
const address = fc.oneof(fc.ipV4(), fc.constantFrom("2001:db8::1", "::1", "::ffff:192.0.2.1"))
/** Times within the reorder time, so that all lines can be sorted. */
const times = fc.integer({ min: 1_700_000_000, max: 1_700_000_009 }).map((second) => second * 1_000)

const written: fc.Arbitrary<Written> = fc.record({
  atMs: times,
  method: fc.constantFrom("GET", "POST", "HEAD", "PROPFIND", "M-SEARCH"),
  url,
  status: fc.integer({ min: 100, max: 599 }),
  address,
  user: value,
  referer: value,
  agent: value,
})

/** A format, with its line for a request, and the record that must be read back. */
interface Case {
  readonly format: string
  readonly options?: ReadLogOptions
  line(request: Written): string
  expected(request: Written): object
  /** True if the format cannot represent this request. */
  cannot?(request: Written): boolean
}

const request = ({ atMs, method, url, status, address }: Written): object => ({
  atMs,
  method,
  url,
  status,
  remoteAddress: address,
})
const withHeaders = (each: Written): object => ({
  ...request(each),
  headers: { referer: each.referer, "user-agent": each.agent },
})
const NGINX =
  '$remote_addr|$remote_user|"$http_user_agent"|$msec|$request_time|"$request_method" "$request_uri" $status "$http_x_api_key" "$cookie_sid"'
const APACHE = '%{msec}t %a "%u" "%m %U%q %H" %>s "%{X-Api-Key}i" "%{sid}C" %D'

const cases: readonly Case[] = [
  {
    format: "common",
    line: (each) => standardLine(each, nginxEscaped, false),
    expected: request,
  },
  {
    format: "combined",
    line: (each) => standardLine(each, nginxEscaped, true),
    expected: withHeaders,
  },
  {
    format: "combined",
    line: (each) => `${standardLine(each, apacheEscaped, true)} 0.004 "more"`,
    expected: withHeaders,
  },
  {
    format: "combined",
    options: { map: { user_id: "remote_user", "header:x-agent": "$http_user_agent" } },
    line: (each) => `${standardLine(each, apacheEscaped, true)} 0.004 "more"`,
    expected: (each) => ({
      ...request(each),
      headers: { referer: each.referer, "user-agent": each.agent, "x-agent": each.agent },
      named: { user_id: each.user },
    }),
  },
  {
    format: "combined",
    options: { map: { user_id: "remote_user", name: "$remote_user" } },
    line: (each) => standardLine(each, apacheEscaped, true),
    expected: (each) => ({ ...withHeaders(each), named: { user_id: each.user, name: each.user } }),
  },
  {
    format: "vhost_combined",
    line: (each) => `www.example.com:80 ${standardLine(each, apacheEscaped, true)}`,
    expected: withHeaders,
  },
  {
    format: NGINX,
    options: { format: NGINX, map: { user_id: "$remote_user" } },
    line: ({ atMs, method, url, status, address, user, referer, agent }) =>
      [
        ...[address, nginxEscaped(user), `"${nginxEscaped(agent)}"`, `${(atMs + 1_500) / 1_000}`, "1.500"],
        `"${method}" "${nginxEscaped(url)}" ${status} "${nginxEscaped(referer)}" "${nginxEscaped(agent)}"`,
      ].join("|"),
    expected: (each) => ({
      ...request(each),
      headers: { "user-agent": each.agent, "x-api-key": each.referer },
      cookies: { sid: each.agent },
      named: { user_id: each.user },
    }),
  },
  {
    format: APACHE,
    options: { format: APACHE, map: { user_id: "%u" } },
    line: ({ atMs, method, url, status, address, user, referer, agent }) =>
      `${atMs} ${address} "${apacheEscaped(user)}" "${method} ${apacheEscaped(url)} HTTP/1.1" ${status} "${apacheEscaped(referer)}" "${apacheEscaped(agent)}" 1500`,
    expected: (each) => ({
      ...request(each),
      headers: { "x-api-key": each.referer },
      cookies: { sid: each.agent },
      named: { user_id: each.user },
    }),
  },
  {
    format: "alb",
    line: ({ atMs, method, url, status, address, agent }) =>
      `https ${new Date(atMs + 900).toISOString()} app/my/50dc ${address.includes(":") ? `[${address}]` : address}:2817 10.0.0.1:80 0.000 0.001 0.000 ${status} 200 34 366 ` +
      `"${method} https://www.example.com:443${apacheEscaped(url)} HTTP/1.1" "${apacheEscaped(agent)}" ECDHE-RSA TLSv1.2 arn:aws:x "Root=1-58" "www.example.com" "-" 0 ` +
      `${new Date(atMs + 7).toISOString().replace("Z", "123Z")} "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`,
    expected: (each) => ({
      ...request(each),
      atMs: each.atMs + 7,
      headers: { "user-agent": each.agent },
    }),
    cannot: ({ url }) => url === "*",
  },
  {
    format: "caddy",
    line: ({ atMs, method, url, status, address, agent }) =>
      JSON.stringify({
        level: "info",
        ts: (atMs + 250) / 1_000,
        logger: "http.log.access",
        request: {
          ...{ remote_ip: "192.0.2.200", client_ip: address, method, uri: url },
          headers: { "User-Agent": agent === undefined ? [] : [agent], "X-Api-Key": ["a", "b"] },
        },
        duration: 0.25,
        status,
      }),
    expected: (each) => ({
      ...request(each),
      headers: { "user-agent": each.agent ?? [], "x-api-key": ["a", "b"] },
    }),
  },
  {
    format: "traefik",
    line: ({ atMs, method, url, status, address, agent }) =>
      JSON.stringify({
        ...{ ClientHost: address, DownstreamStatus: status, RequestMethod: method, RequestPath: url },
        StartUTC: new Date(atMs + 5).toISOString().replace("Z", "123456Z"),
        "request_User-Agent": agent,
        time: "2020-01-01T00:00:00Z",
      }),
    expected: (each) => ({
      ...request(each),
      atMs: each.atMs + 5,
      headers: each.agent === undefined ? {} : { "user-agent": each.agent },
    }),
  },
  {
    format: "gcp",
    line: ({ atMs, method, url, status, address, agent }) =>
      JSON.stringify({
        httpRequest: {
          ...{ requestMethod: method, requestUrl: `https://example.com${url}`, status, userAgent: agent },
          remoteIp: address,
        },
        timestamp: new Date(atMs + 1).toISOString(),
      }),
    expected: (each) => ({
      ...request(each),
      atMs: each.atMs + 1,
      headers: each.agent === undefined ? {} : { "user-agent": each.agent },
    }),
    cannot: ({ url }) => url === "*",
  },
  {
    format: "pino-http",
    line: ({ atMs, method, url, status, address, agent }) =>
      JSON.stringify({
        ...{ level: 30, time: atMs + 40, pid: 1, hostname: "h" },
        req: {
          id: 1,
          method,
          url,
          ...(agent !== undefined && { headers: { "x-key": agent } }),
          remoteAddress: address,
        },
        ...{ res: { statusCode: status }, responseTime: 40, msg: "request completed" },
        ratelimit: { policy: "per-ip", allowed: status < 400, remaining: 3, limit: 10 },
      }),
    expected: (each) => ({
      ...request(each),
      ...(each.agent !== undefined && { headers: { "x-key": each.agent } }),
      live: { policy: "per-ip", allowed: each.status < 400 },
    }),
  },
  {
    format: "fastify",
    line: ({ atMs, method, url, status, address }) => {
      const own = { pid: 1, hostname: "h", reqId: "req-1" }
      const req = { method, url, host: "localhost", remoteAddress: address, remotePort: 5 }
      const res = { statusCode: status }
      return [
        { level: 30, time: atMs, ...own, req, msg: "incoming request" },
        { level: 30, time: atMs + 1, ...own, msg: "a message of the app" },
        { level: 30, time: atMs + 2, ...own, res, responseTime: 2.5, msg: "request completed" },
      ]
        .map((line) => JSON.stringify(line))
        .join("\n")
    },
    expected: request,
  },
  {
    format: "json",
    options: {
      map: {
        ip: "client.addr",
        time: "ts",
        method: "m",
        url: "u",
        status: "s",
        user_id: "user.id",
        "header:X-Key": "k",
      },
    },
    line: ({ atMs, method, url, status, address, user, agent }) =>
      JSON.stringify({
        ...{ ts: new Date(atMs).toISOString(), client: { addr: address }, m: method, u: url, s: `${status}` },
        ...{ "user.id": user, k: agent },
      }),
    expected: (each) => ({
      ...request(each),
      headers: { "x-key": each.agent },
      named: { user_id: each.user },
    }),
  },
]

describe("readLogs, for formats,", () => {
  it.each(cases)(
    "reads back what $format writes ($options.map)",
    async ({ format, options, line, expected, cannot }) => {
      await fc.assert(
        fc.asyncProperty(fc.array(written, { minLength: 1, maxLength: 8 }), async (requests) => {
          const usable = requests.filter((each) => cannot?.(each) !== true)
          fc.pre(usable.length > 0)
          const { records, summary } = await readInput(`${usable.map(line).join("\n")}\n`, options)
          expect(summary.unparsedExamples).toEqual([])
          expect(summary.files[0]?.format).toBe(format)
          const inOrder = [...usable].sort((a, b) => a.atMs - b.atMs)
          expect(records.map(facts)).toEqual(inOrder.map(expected))
        }),
        { numRuns: 150 },
      )
    },
  )

  it("reads CloudFront logs by their #Fields line", async () => {
    const lines = [
      "#Version: 1.0",
      "#Fields: date time x-edge-location c-ip cs-method cs-uri-stem sc-status cs(User-Agent) cs-uri-query time-taken x-forwarded-for",
      "2025-06-03\t08:00:07\tFRA2\t192.0.2.1\tGET\t/a\t200\tMozilla/5.0%20(X11)\tb=1\t2.400\t-",
      "2025-06-03\t08:00:05\tFRA2\t2001:db8::1\tPOST\t/login\t401\tcurl%252F8\t-\t0.004\t203.0.113.7",
      "#Fields: date time c-ip cs-method cs-uri-stem sc-status",
      "2025-06-03\t08:00:09\t192.0.2.2\tGET\t/c\t200",
      "2025-06-03\t08:00:09\t192.0.2.2\tGET\t/c",
    ]
    const { records, summary } = await readInput(lines.join("\r\n"))
    const start = Date.UTC(2025, 5, 3, 8)
    const headers = { "user-agent": "Mozilla/5.0 (X11)", "x-forwarded-for": undefined }
    expect(records.map(facts)).toEqual([
      { atMs: start + 5_000, method: "GET", url: "/a?b=1", status: 200, remoteAddress: "192.0.2.1", headers },
      {
        ...{ atMs: start + 5_000, method: "POST", url: "/login", status: 401, remoteAddress: "2001:db8::1" },
        headers: { "user-agent": "curl/8", "x-forwarded-for": "203.0.113.7" },
      },
      { atMs: start + 9_000, method: "GET", url: "/c", status: 200, remoteAddress: "192.0.2.2", headers: {} },
    ])
    expect(summary).toMatchObject({ lines: 7, skipped: 3, unparsed: 1, requests: 3, resolutionMs: 1_000 })
    expect(records.map(({ onlyFields }) => onlyFields?.has("query:b"))).toEqual([true, true, false])
    expect(records.map(({ onlyFields }) => onlyFields?.has("header:x-forwarded-for"))).toEqual([
      true,
      true,
      false,
    ])
  })

  it("reads times in any zone", async () => {
    const at = Date.UTC(2025, 11, 31, 23, 59, 59)
    const line = (offset: number): string => `192.0.2.1 - - [${clf(at, offset)}] "GET / HTTP/1.1" 200 5`
    const { records } = await readInput([0, 60, -330, 345, 840].map(line).join("\n"))
    expect(records.map(({ atMs }) => atMs)).toEqual([at, at, at, at, at])
  })
})
