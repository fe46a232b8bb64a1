import { describe, expect, it } from "vitest"
import type { ReadLogOptions } from "../log.ts"
import { facts, readInput } from "../testing/read-all.ts"

const START_MS = Date.UTC(2025, 5, 3, 8)

async function read(log: string, options: ReadLogOptions): Promise<Record<string, unknown>[]> {
  return (await readInput(log, options)).records.map(facts)
}

describe("an Apache format line", () => {
  it.each([
    ["%T", "2", 2_000],
    ["%{s}T", "2", 2_000],
    ["%{ms}T", "250", 250],
    ["%{us}T", "250000", 250],
    ["%D", "250000", 250],
  ])("may contain the duration %s, which is subtracted from the end", async (directive, value, tookMs) => {
    const end = START_MS + 10_000
    const [record] = await read(`192.0.2.1 ${end * 1_000} ${value} "GET /a HTTP/1.1" 200\n`, {
      format: `%h %{end:usec}t ${directive} "%r" %>s`,
    })
    expect(record).toMatchObject({ atMs: end - tookMs, url: "/a", status: 200 })
  })

  it("may be a whole directive with escaped characters and a percent sign", async () => {
    const format = 'LogFormat "%h\\t%t 100%% \\"%m %U%q\\" %>s" mine'
    const [record] = await read('192.0.2.1\t[03/Jun/2025:08:00:00 +0000] 100% "GET /a?b=1" 200\n', { format })
    expect(record).toMatchObject({ atMs: START_MS, method: "GET", url: "/a?b=1", status: 200 })
  })
})

describe("an nginx format line", () => {
  it("may be a whole directive with several quoted parts", async () => {
    const format = "log_format mine escape=json '$remote_addr [$time_local] ' '$request_method $request_uri';"
    const [record] = await read("192.0.2.1 [03/Jun/2025:08:00:00 +0000] GET /a\n", { format })
    expect(record).toMatchObject({ remoteAddress: "192.0.2.1", atMs: START_MS, method: "GET", url: "/a" })
  })

  const TAB = "192.0.2.1\t2025-06-03T08:00:00+00:00\tGET\t/a\t200\n"
  const NAMES = ["$remote_addr", "$time_iso8601", "$request_method", "$request_uri", "$status"]

  it.each([
    ["in the directive", `log_format tsv '${NAMES.join("\\t")}';`],
    ["in double quotes", `log_format tsv "${NAMES.join("\\t")}";`],
    [
      "in several quoted parts",
      `log_format tsv ${NAMES.map((name) => `'${name}\\t'`).join(" ")};`.replace("\\t';", "';"),
    ],
    ["without quotes around it", NAMES.join("\\t")],
    ["before a line break", `${NAMES.join("\\t")}\\n`],
  ])("contains a tab for \\t %s", async (_, format) => {
    expect(await read(TAB, { format })).toEqual([
      { remoteAddress: "192.0.2.1", atMs: START_MS, method: "GET", url: "/a", status: 200 },
    ])
  })

  it('contains quotes and backslashes for \\" and \\\\, and other backslashes unchanged', async () => {
    const format = String.raw`log_format odd "$remote_addr \"$request\" $time_iso8601 \\ \d";`
    const [record] = await read(`192.0.2.1 "GET /a HTTP/1.1" 2025-06-03T08:00:00+00:00 \\ \\d\n`, { format })
    expect(record).toMatchObject({ url: "/a", atMs: START_MS })
  })

  it.each(["$remote_addr $msec\\n$request_uri", "%h %t\\n%U"])(
    "is rejected if it contains a line break: %s",
    async (format) => {
      await expect(readInput(TAB, { format })).rejects.toThrow(
        /has a line break \(\\n\).*log one line for each request/,
      )
    },
  )

  const INGRESS =
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" ' +
    "$request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] $upstream_addr " +
    "$upstream_response_length $upstream_response_time $upstream_status $req_id"
  const ingress = (addresses: string, lengths: string, times: string, statuses: string): string =>
    '192.0.2.1 - - [03/Jun/2025:08:00:00 +0000] "GET /a HTTP/1.1" 200 61 "-" "test" 348 0.001 [shop-web-80] [] ' +
    `${addresses} ${lengths} ${times} ${statuses} 835136ae24486dbb\n`

  it.each([
    ["one upstream", ["10.0.0.1:80", "61", "0.001", "200"]],
    ["no upstream", ["-", "-", "-", "-"]],
    ["two upstreams", ["10.0.0.1:80, 10.0.0.2:80", "0, 61", "0.000, 0.001", "502, 200"]],
    ["an upstream without a response", ["10.0.0.1:80, 10.0.0.2:80", "61, -", "0.100, -", "200, -"]],
    [
      "upstreams of two groups",
      ["10.0.0.1:80 : 10.0.0.2:80, unix:/run/a.sock", "0 : 0, 61", "0.000 : 0.001, 0.002", "502 : 504, 200"],
    ],
  ] as const)(
    "of ingress-nginx matches lines with %s, whether it is given or detected",
    async (_, [addresses, lengths, times, statuses]) => {
      const line = ingress(addresses, lengths, times, statuses)
      const expected = { remoteAddress: "192.0.2.1", atMs: START_MS, method: "GET", url: "/a", status: 200 }
      const { records, summary } = await readInput(line, {
        format: INGRESS,
        map: { upstreams: "upstream_addr", id: "req_id" },
      })
      expect(summary).toMatchObject({ requests: 1, unparsed: 0 })
      expect(facts(records[0] as (typeof records)[number])).toMatchObject({
        ...expected,
        named: { upstreams: addresses === "-" ? undefined : addresses, id: "835136ae24486dbb" },
      })
      const [detected] = await read(line, {})
      expect(detected).toMatchObject(expected)
    },
  )

  it.each([
    "$upstream_addr|$remote_addr|$msec|$upstream_status|$request_uri",
    '{"up":"$upstream_addr","ip":"$remote_addr","at":$msec,"statuses":$upstream_status,"uri":"$request_uri"}',
    "$upstream_addr $remote_addr $msec $upstream_status $request_uri",
    "$request_uri $upstream_addr $remote_addr $msec $upstream_status",
  ])("may contain several upstreams anywhere: %s", async (format) => {
    const values: Readonly<Record<string, string>> = {
      $upstream_addr: "10.0.0.1:80, 10.0.0.2:80",
      $remote_addr: "192.0.2.1",
      $msec: `${START_MS / 1_000}.000`,
      $upstream_status: "502, 200",
      $request_uri: "/a",
    }
    const line = format.replace(/\$\w+/g, (name) => values[name] as string)
    expect(await read(`${line}\n`, { format })).toMatchObject([
      { remoteAddress: "192.0.2.1", atMs: START_MS, url: "/a" },
    ])
  })

  it("does not match requests with a missing or invalid value", async () => {
    const format = "$remote_addr $time_iso8601 $request_method $request_uri $request_time"
    const line = (method: string, target: string, took: string) =>
      `192.0.2.1 2025-06-03T08:00:00+00:00 ${method} ${target} ${took}\n`
    const log =
      line("GET", "/a", "-") + line("GE(T", "/a", "0.1") + line("GET", "-", "0.1") + line("GET", "/b", "x")
    const { records, summary } = await readInput(log, { format })
    expect(records.map(({ url }) => url)).toEqual(["/a"])
    expect(summary).toMatchObject({ lines: 4, requests: 1, skipped: 2, unparsed: 1 })
  })
})

describe("the format of CloudFront", () => {
  const FIELDS =
    "#Version: 1.0\n#Fields: date time c-ip cs-method cs-uri-stem sc-status cs(User-Agent) time-taken\n"
  const line = (members: Readonly<Record<string, string>> = {}) => {
    const { ip = "192.0.2.1", method = "GET", stem = "/a", took = "0.5" } = members
    return `2025-06-03\t08:00:00\t${ip}\t${method}\t${stem}\t200\tcurl%2F8\t${took}\n`
  }

  it("provides values for --map", async () => {
    const map = {
      "header:x-agent": "cs(User-Agent)",
      agent: "cs(User-Agent)",
      "cookie:agent": "cs(User-Agent)",
    }
    const [record] = await read(FIELDS + line(), { map })
    expect(record).toMatchObject({ named: { agent: "curl/8" }, headers: { "x-agent": "curl/8" } })
    expect(record).toMatchObject({ cookies: { agent: "curl/8" } })
  })

  it("does not match lines with an invalid address, target or duration", async () => {
    const log =
      FIELDS +
      line() +
      line({ ip: "nobody" }) +
      line({ stem: "-" }) +
      line({ method: "-" }) +
      line({ took: "x" })
    const { summary } = await readInput(log)
    expect(summary).toMatchObject({ requests: 1, unparsed: 4 })
  })
})
