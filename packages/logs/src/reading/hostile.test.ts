import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { facts, readInput } from "./testing/read-all.ts"
import { clf, standardLine } from "./testing/write-lines.ts"

const AT = Date.UTC(2025, 5, 3, 8)
const COMBINED = `192.0.2.1 - - [${clf(AT)}] "GET /a HTTP/1.1" 200 5 "-" "test"`
const CUSTOM = '$remote_addr $remote_user [$time_local] "$request" $http_x_api_key $status'
const SAMPLES: Readonly<Record<string, string>> = {
  common: `192.0.2.1 - - [${clf(AT)}] "GET /a HTTP/1.1" 200 5`,
  combined: COMBINED,
  vhost_combined: `www.example.com:80 ${COMBINED}`,
  [CUSTOM]: `192.0.2.1 - [${clf(AT)}] "GET /a HTTP/1.1" key 200`,
  alb:
    "h2 2025-06-03T08:00:00.500000Z app/x 192.0.2.1:5 - 0 0 0 200 200 1 1 " +
    '"GET https://a:443/a HTTP/2.0" "test" - - arn "r" "d" "c" 0 2025-06-03T08:00:00.000000Z "f"',
  caddy: `{"ts":${AT / 1_000},"request":{"client_ip":"192.0.2.1","method":"GET","uri":"/a"},"status":200,"duration":0}`,
  traefik:
    '{"ClientHost":"192.0.2.1","RequestMethod":"GET","RequestPath":"/a","StartUTC":"2025-06-03T08:00:00Z"}',
  gcp: '{"httpRequest":{"requestMethod":"GET","requestUrl":"/a","remoteIp":"192.0.2.1"},"timestamp":"2025-06-03T08:00:00Z"}',
  "pino-http": `{"time":${AT},"req":{"method":"GET","url":"/a","remoteAddress":"192.0.2.1"},"responseTime":0}`,
  fastify: `{"time":${AT},"req":{"method":"GET","url":"/a","remoteAddress":"192.0.2.1"},"msg":"incoming request"}`,
}

const junk = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.constantFrom(...'"\\[]{}:,. -/%$0129Tabxn\t\0') }),
)

describe("hostile lines", () => {
  it.each(Object.entries(SAMPLES))("neither throw nor get a wrong time: %s", async (format, sample) => {
    // Damages a valid line anywhere, or replaces it.
    const damaged = fc
      .tuple(fc.nat(sample.length), fc.nat(12), junk)
      .map(([at, removed, added]) => sample.slice(0, at) + added + sample.slice(at + removed))
    const lines = fc.array(fc.oneof(damaged, junk), { maxLength: 10 })
    await fc.assert(
      fc.asyncProperty(lines, async (given) => {
        const log = [sample, ...given, sample].join("\n")
        const { records, summary } = await readInput(Buffer.from(log), { format })
        const { lines: count, requests, unparsed, skipped } = summary
        expect(requests + unparsed + skipped).toBe(count)
        expect(requests).toBeGreaterThanOrEqual(2)
        for (const { atMs, remoteAddress, status, url } of records) {
          expect(Number.isInteger(atMs) && atMs > 1e11 && atMs < 1e14).toBe(true)
          if (remoteAddress !== undefined) expect(remoteAddress).toMatch(/^[\da-f.:]{2,45}$/i)
          if (status !== undefined) expect(status).toBeLessThan(1_000)
          expect(url).not.toBe("")
        }
      }),
      { numRuns: 300 },
    )
  })

  it("cannot forge a time, a request or another line through the name of a user", async () => {
    const forged = `x [${clf(0)}] "GET /forged HTTP/1.1" 200 5 "-" "-`
    for (const escaped of [nginx, apache]) {
      const line = standardLine(
        {
          atMs: AT,
          method: "GET",
          url: "/a",
          status: 401,
          address: "192.0.2.1",
          user: forged,
          agent: forged,
        },
        escaped,
        true,
      )
      const { records, summary } = await readInput(line)
      expect(records.map(({ atMs, url, status }) => ({ atMs, url, status }))).toEqual([
        { atMs: AT, url: "/a", status: 401 },
      ])
      expect(summary.unparsed).toBe(0)
    }
  })

  it("with an empty user name of Apache are read", async () => {
    const line = `192.0.2.1 - "" [${clf(AT)}] "GET /a HTTP/1.1" 401 5 "-" "test"`
    for (const options of [
      {},
      { map: { user_id: "remote_user" } },
      { format: '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"' },
    ]) {
      const { records } = await readInput(line, options)
      expect(records.map(({ url, named }) => [url, named?.user_id])).toEqual([["/a", undefined]])
    }
  })

  it("are not requests if the server did not understand the request", async () => {
    const line = (request: string): string => `192.0.2.1 - - [${clf(AT)}] "${request}" 400 5 "-" "-"`
    const log = [
      COMBINED,
      line("\\x16\\x03\\x01"),
      line("-"),
      line(""),
      line("GET /a"),
      line("GET  HTTP/1.1"),
    ].join("\n")
    expect((await readInput(log)).summary).toMatchObject({ requests: 1, skipped: 5, unparsed: 0 })
    expect((await readInput(log, { map: { u: "remote_user" } })).summary).toMatchObject({
      requests: 1,
      skipped: 5,
    })
  })

  it("with two unquoted values are unparsed if spaces make them ambiguous", async () => {
    const format = "$msec $remote_user $http_x_key"
    const { records, summary } = await readInput("1748937600.000 a b\n1748937600.000 a b c", {
      format,
      map: { user_id: "remote_user" },
    })
    expect(records.map(({ named, headers }) => [named?.user_id, headers?.["x-key"]])).toEqual([["a", "b"]])
    expect(summary.unparsed).toBe(1)
  })

  it("of other logs in the same file are unparsed", async () => {
    const log = [
      COMBINED,
      SAMPLES.alb,
      SAMPLES.vhost_combined,
      SAMPLES.caddy,
      'localhost - - [x] "GET / HTTP/1.1" 200 5',
    ]
    expect((await readInput(log.join("\n"))).summary).toMatchObject({ requests: 1, unparsed: 4 })
  })

  it.each([
    "30/Feb/2025:08:00:00 +0000",
    "03/Jun/2025:24:00:00 +0000",
    "03/Jun/2025:08:60:00 +0000",
    "03/Jun/2025:08:00:61 +0000",
    "03/Jun/2025:08:00:00 +1500",
    "03/Jun/1925:08:00:00 +0000",
    "03/Jum/2025:08:00:00 +0000",
    "03/Jun/2025 08:00:00 +0000",
  ])("with the invalid time %s are unparsed, also after a valid line of the same minute", async (time) => {
    const { summary } = await readInput([COMBINED, COMBINED.replace(clf(AT), time)].join("\n"))
    expect(summary).toMatchObject({ requests: 1, unparsed: 1 })
  })

  it.each([
    "2025-06-03T08:00:00",
    "2025-02-30T08:00:00Z",
    "2025-06-03",
    "17489376000000000",
    "-5",
    "",
    "x",
    null,
    {},
    1e15,
    5,
  ])("with the invalid time %j in JSON are unparsed", async (time) => {
    const options = { map: { time: "t", ip: "ip" } }
    const log = [
      { t: AT, ip: "192.0.2.1" },
      { t: time, ip: "192.0.2.1" },
    ]
    const { summary } = await readInput(log.map((each) => JSON.stringify(each)).join("\n"), options)
    expect(summary).toMatchObject({ requests: 1, unparsed: 1 })
  })

  it.each([
    [AT, 0],
    [AT / 1_000, 0],
    [AT / 1_000 + 0.123, 123],
    [`${AT / 1_000}.123`, 123],
    [`${AT}`, 0],
    ["2025-06-03T10:00:00.123456+02:00", 123],
    ["2025-06-03 08:00:00.5Z", 500],
  ])("are not confused with the valid time %j", async (time, ms) => {
    const { records } = await readInput(JSON.stringify({ t: time, ip: "192.0.2.1" }), {
      map: { time: "t", ip: "ip" },
    })
    expect(records.map(facts)).toEqual([{ atMs: AT + ms, remoteAddress: "192.0.2.1" }])
  })
})

function nginx(text: string | undefined): string {
  return (text ?? "-").replace(/["\\]/g, (char) => (char === '"' ? "\\x22" : "\\x5C"))
}

function apache(text: string | undefined): string {
  return (text ?? "-").replace(/["\\]/g, "\\$&")
}

describe("hostile values", () => {
  const common = (date: string) => `192.0.2.1 - - [${date}:08:00:00 +0000] "GET / HTTP/1.1" 200 5\n`
  const pino = (responseTime: number) =>
    `{"level":30,"time":1748937600000,"req":{"method":"GET","url":"/","remoteAddress":"192.0.2.1"},"res":{"statusCode":200},"responseTime":${responseTime},"msg":"request completed"}\n`
  const caddy = (duration: number) =>
    `{"ts":1748937600.5,"request":{"client_ip":"192.0.2.1","method":"GET","uri":"/"},"status":200,"duration":${duration}}\n`

  it.each([
    ["a date in a far future", common("03/Jun/2025"), common("03/Jun/4999")],
    ["a date beyond what counters can hold", common("03/Jun/2025"), common("03/Jun/2107")],
    ["a date that is still to come", common("03/Jun/2025"), common("03/Jun/2100")],
    ["an absurd duration", pino(5), pino(1e18)],
    ["a negative duration", pino(5), pino(-1e15)],
    ["a duration of more than a day", pino(5), pino(86_400_001)],
    ["an absurd duration of Caddy", caddy(0.1), caddy(1e15)],
  ])("with %s make their own line unparsed, but no other line", async (_name, good, bad) => {
    const { records, summary } = await readInput(`${good}${bad}${good}`)
    expect(records).toHaveLength(2)
    expect(summary).toMatchObject({ requests: 2, unparsed: 1, late: 0 })
  })

  it("cannot hide the headers of other clients by inventing names", async () => {
    const traefik = (headers: object) =>
      `${JSON.stringify({ StartUTC: "2025-06-03T08:00:00Z", ClientHost: "192.0.2.1", RequestMethod: "GET", RequestPath: "/", DownstreamStatus: 200, ...headers })}\n`
    const invented = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`request_X-${at}`, "1"]))
    const { records } = await readInput(traefik(invented) + traefik({ "request_X-Api-Key": "k" }))
    expect(records[1]?.onlyFields?.has("header:x-api-key")).toBe(true)
  })

  it("of Fastify cannot steal the status of another request with its id", async () => {
    const line = (at: number, msg: string, members: object) =>
      `${JSON.stringify({ level: 30, time: 1_748_937_600_000 + at, pid: 1, hostname: "a", reqId: "x", ...members, msg })}\n`
    const incoming = (at: number, remoteAddress: string) =>
      line(at, "incoming request", { req: { method: "GET", url: "/", remoteAddress } })
    const completed = (at: number, statusCode: number) =>
      line(at, "request completed", { res: { statusCode }, responseTime: 1 })
    const { records } = await readInput(
      incoming(0, "192.0.2.1") + incoming(1, "192.0.2.2") + completed(2, 200) + completed(3, 429),
    )
    expect(records.map(({ status }) => status)).toEqual([undefined, undefined])
    const usual = await readInput(incoming(0, "192.0.2.1") + completed(2, 429))
    expect(usual.records.map(({ status }) => status)).toEqual([429])
  })
})
