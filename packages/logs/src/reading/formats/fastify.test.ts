import { describe, expect, it } from "vitest"
import { facts, readInput } from "../testing/read-all.ts"

const START = 1_748_937_600_000

function incoming(ms: number, reqId: string, url: string, pid = 1): string {
  const req = { method: "GET", url, host: "localhost", remoteAddress: "192.0.2.1", remotePort: 5 }
  return JSON.stringify({
    level: 30,
    time: START + ms,
    pid,
    hostname: "h",
    reqId,
    req,
    msg: "incoming request",
  })
}

function completed(ms: number, reqId: string, statusCode: number, more: object = {}, pid = 1): string {
  const own = { pid, hostname: "h", reqId, res: { statusCode }, responseTime: 3.5, ...more }
  return JSON.stringify({ level: 30, time: START + ms, ...own, msg: "request completed" })
}

describe("the format of Fastify", () => {
  it("takes the time from the incoming line, and the status and the verdict from the completed line", async () => {
    const ratelimit = { policy: "per-ip", allowed: false, remaining: 0, limit: 5 }
    const log = [
      incoming(0, "req-1", "/a"),
      incoming(10, "req-1", "/b", 2),
      incoming(20, "req-2", "/c"),
      completed(3_000, "req-1", 200, {}, 2),
      completed(4_000, "req-1", 429, { ratelimit }),
      '{"level":30,"time":1748937604000,"pid":1,"hostname":"h","msg":"another message"}',
      completed(5_000, "req-9", 500),
    ]
    const { records, summary } = await readInput(log.join("\n"))
    const common = { method: "GET", remoteAddress: "192.0.2.1" }
    expect(records.map(facts)).toEqual([
      { ...common, atMs: START, url: "/a", status: 429, live: { policy: "per-ip", allowed: false } },
      { ...common, atMs: START + 10, url: "/b", status: 200 },
      { ...common, atMs: START + 20, url: "/c" },
    ])
    expect(summary).toMatchObject({ lines: 7, requests: 3, skipped: 4, unparsed: 0, tooManyRequests: 0 })
  })

  it("skips a request by the status of its completed line", async () => {
    const log = [incoming(0, "req-1", "/a"), incoming(1, "req-2", "/b"), completed(2, "req-1", 429)]
    const { records, summary } = await readInput(log.join("\n"), { withoutStatus: [429] })
    expect(records.map(({ url }) => url)).toEqual(["/b"])
    expect(summary).toMatchObject({ requests: 1, skipped: 2, tooManyRequests: 0 })
  })

  it("adds no status if two open requests use the same reqId", async () => {
    const log = [incoming(0, "req-1", "/a"), incoming(1, "req-1", "/b"), completed(2, "req-1", 200)]
    expect((await readInput(log.join("\n"))).records.map(({ status }) => status)).toEqual([
      undefined,
      undefined,
    ])
  })

  it("reads more fields from the incoming line", async () => {
    const { records } = await readInput(incoming(0, "req-1", "/a"), { map: { user_id: "req.host" } })
    expect(records[0]?.named).toEqual({ user_id: "localhost" })
  })
})
