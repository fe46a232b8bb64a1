import { once } from "node:events"
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type LogRecord, type ReadLogOptions, readLogs } from "@sluice/logs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RunningServer, startApache, startNginx } from "../servers/web-server.ts"
import { findWebServer } from "../servers/web-server-binary.ts"

/** A request as bytes, each as one character, and the record that its log line must produce. */
interface Sent {
  readonly target: string
  readonly agent: string
  readonly key?: string
  readonly user?: string
  readonly status: "served" | "refused"
  /** Milliseconds between the first line and the rest of the request. */
  readonly pauseMs?: number
}

const FORGED = 'x [01/Jan/2001:00:00:00 +0000] "GET /forged HTTP/1.1" 200 5 "-" "-'
/** The name of a user ends at its first colon. */
const FORGED_USER = FORGED.replaceAll(":", ".")
const REQUESTS: readonly Sent[] = [
  { target: "/", agent: "plain", status: "served" },
  { target: "/a?b=1&c=%20d", agent: 'quote " and backslash \\ and tab \t.', key: "k-1", status: "served" },
  { target: "/caf\u00c3\u00a9?q=\u00fc", agent: "caf\u00c3\u00a9 \u00ff", key: "\u00e9", status: "served" },
  { target: '/quote"and\\backslash', agent: FORGED, key: FORGED, status: "served" },
  { target: "/login", agent: "-", user: "ann", status: "refused" },
  { target: "/login?next=%2F", agent: "spaces", user: FORGED_USER, key: "a b  c", status: "refused" },
  { target: "/login", agent: "no name", user: "", status: "refused" },
  { target: "/slow", agent: "slow", status: "served", pauseMs: 400 },
]

async function send(port: number, { target, agent, key, user, pauseMs = 0 }: Sent): Promise<number> {
  const socket = connect(port, "127.0.0.1")
  await once(socket, "connect")
  const startMs = Date.now()
  const authorization = user === undefined ? [] : [`Authorization: Basic ${btoa(`${user}:pw`)}`]
  const lines = [
    ...[
      `GET ${target} HTTP/1.1`,
      "Host: localhost",
      `User-Agent: ${agent}`,
      "Referer: http://localhost/from",
    ],
    ...[...(key === undefined ? [] : [`X-Api-Key: ${key}`]), "Cookie: sid=s-1; other=2", ...authorization],
    "Connection: close",
  ]
  const [first = "", ...rest] = lines
  socket.write(Buffer.from(`${first}\r\n`, "latin1"))
  if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
  socket.write(Buffer.from(`${rest.join("\r\n")}\r\n\r\n`, "latin1"))
  socket.resume()
  await once(socket, "close")
  return startMs
}

/** Sends bytes that are not a request, and waits until the server closes the connection. */
async function sendGarbage(port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1")
  await once(socket, "connect")
  socket.end(Buffer.from('\u0016\u0003\u0001 "\\\r\n\r\n', "latin1"))
  socket.resume()
  await once(socket, "close")
}

/** Sends all requests one after the other. Returns the time at which each request was sent. */
async function sendAll({ port }: RunningServer): Promise<readonly number[]> {
  const sentMs: number[] = []
  for (const each of REQUESTS) sentMs.push(await send(port, each))
  await sendGarbage(port)
  return sentMs
}

async function read(path: string, options: ReadLogOptions = {}): Promise<readonly LogRecord[]> {
  const logs = readLogs([path], options, { stdin: process.stdin })
  const records: LogRecord[] = []
  for await (const list of logs) records.push(...list)
  expect(logs.summary.unparsedExamples, readFileSync(path, "latin1")).toEqual([])
  expect(logs.summary).toMatchObject({ requests: REQUESTS.length, unparsed: 0, late: 0 })
  // The invalid bytes also produce a line.
  expect(logs.summary.skipped).toBe(logs.summary.lines - REQUESTS.length)
  expect(logs.summary.skipped).toBeGreaterThan(0)
  // The line of each request, by the number of the request, because lines of one second may be in any order.
  return records.sort((a, b) => a.line - b.line)
}

const value = (text: string | undefined): string | undefined => (text === "-" ? undefined : text)

function expectCombined(records: readonly LogRecord[], served: number, sentMs: readonly number[]): void {
  expect(
    records.map(({ method, url, status, remoteAddress, headers }) => ({
      method,
      url,
      status,
      remoteAddress,
      headers,
    })),
  ).toEqual(
    REQUESTS.map(({ target, agent, status }) => ({
      ...{ method: "GET", url: target, status: status === "refused" ? 401 : served },
      remoteAddress: "127.0.0.1",
      headers: { referer: "http://localhost/from", "user-agent": value(agent) },
    })),
  )
  for (const [at, { atMs }] of records.entries()) {
    // The log contains times in whole seconds.
    expect(atMs).toBeGreaterThanOrEqual(Math.floor((sentMs[at] as number) / 1_000) * 1_000)
    expect(atMs - (sentMs[at] as number)).toBeLessThan(30_000)
  }
}

/** Checks the members of custom formats. Times must be arrival times in milliseconds. */
function expectCustom(records: readonly LogRecord[], served: number, sentMs: readonly number[]): void {
  expect(
    records.map(({ url, status, headers, cookies, named }) => ({ url, status, headers, cookies, named })),
  ).toEqual(
    REQUESTS.map(({ target, agent, key, user, status }) => ({
      ...{ url: target, status: status === "refused" ? 401 : served },
      headers: { "x-api-key": key, "user-agent": value(agent) },
      cookies: { sid: "s-1" },
      named: { user_id: user === "" ? undefined : user },
    })),
  )
  for (const [at, { atMs }] of records.entries()) {
    expect(atMs).toBeGreaterThanOrEqual((sentMs[at] as number) - 50)
    // The server may notice a request late. However, a request that pauses must not get the time of its end.
    expect(atMs - (sentMs[at] as number)).toBeLessThan(350)
  }
}

describe("logs of nginx", () => {
  const CUSTOM =
    '$remote_addr [$time_iso8601] $msec $request_time "$request_method $request_uri" $status $remote_user "$http_x_api_key" "$cookie_sid" "$http_user_agent"'
  let server: RunningServer
  let sentMs: readonly number[]
  beforeAll(async () => {
    server = await startNginx({ combined: "", custom: CUSTOM })
    sentMs = await sendAll(server)
    await server.stop()
  })
  afterAll(() => server.remove())

  it("in the combined format are detected and read", async () => {
    expectCombined(await read(server.logFile("combined")), 200, sentMs)
  })

  it.each([CUSTOM, `log_format custom '${CUSTOM.slice(0, 40)}'\n  '${CUSTOM.slice(40)}';`])(
    "are read with the format line that wrote them: %s",
    async (format) => {
      const map = { user_id: "remote_user" }
      const records = await read(server.logFile("custom"), { format, map })
      expectCustom(records, 200, sentMs)
    },
  )
})

describe("logs of Apache", () => {
  const COMBINED = '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"'
  const VHOST = `%v:%p ${COMBINED}`
  const CUSTOM = '%a %{msec}t "%m %U%q" %>s %u "%{X-Api-Key}i" "%{sid}C" "%{User-Agent}i" %D'
  let server: RunningServer
  let sentMs: readonly number[]
  beforeAll(async () => {
    server = await startApache({ combined: COMBINED, vhost: VHOST, custom: CUSTOM })
    sentMs = await sendAll(server)
    await server.stop()
  })
  afterAll(() => server.remove())

  it("in the combined format, with and without the host, are detected and read", async () => {
    expectCombined(await read(server.logFile("combined")), 404, sentMs)
    expectCombined(await read(server.logFile("vhost")), 404, sentMs)
  })

  it.each([CUSTOM, `LogFormat "${CUSTOM.replaceAll('"', '\\"')}" custom`])(
    "are read with the format line that wrote them: %s",
    async (format) => {
      const records = await read(server.logFile("custom"), { format, map: { user_id: "%u" } })
      expectCustom(records, 404, sentMs)
    },
  )
})

describe("findWebServer", () => {
  it("explains in one line how to install a server if no server is found", async () => {
    // The cache folder cannot be created below a file, so no server is downloaded.
    const cache = join(tmpdir(), "none", "\0")
    const failure = await findWebServer("apache", { env: { PATH: "" }, cacheFolder: cache }).catch(
      (error: unknown) => error,
    )
    expect(failure).toHaveProperty(
      "stack",
      expect.stringMatching(/^Error: No Apache httpd found[^\n]*apt-get install[^\n]*$/),
    )
  })
})
