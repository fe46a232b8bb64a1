import { describe, expect, it } from "vitest"
import { readInput } from "../testing/read-all.ts"

const REQUEST = { client_ip: "192.0.2.1", method: "GET", uri: "/cart", headers: {} }

function line(members: object): string {
  return `${JSON.stringify({ level: "info", ts: 1_748_937_600, request: REQUEST, duration: 0.01, status: 200, ...members })}\n`
}

describe("a request in a log of Caddy", () => {
  it.each([["http.log.access"], ["http.log.access.log0"], ["http.log.access.shop"]])(
    "is a line of the logger %s",
    async (logger) => {
      const { summary } = await readInput(line({ logger, msg: "handled request" }))
      expect(summary).toMatchObject({ requests: 1, skipped: 0 })
    },
  )

  it.each([
    [
      "an error",
      { level: "error", logger: "http.log.error", msg: "dial tcp: connection refused", status: 502 },
    ],
    [
      "an error of a named logger",
      { level: "error", logger: "http.log.error.log0", msg: "EOF", status: 502 },
    ],
    ["an upstream", { level: "debug", logger: "http.handlers.reverse_proxy", msg: "upstream roundtrip" }],
    ["a rewrite", { level: "debug", logger: "http.handlers.rewrite", msg: "rewrote request" }],
    ["another logger with a similar name", { logger: "http.log.accessories", msg: "x" }],
    ["an error without the name of its logger", { level: "error", msg: "dial tcp: connection refused" }],
  ])("is not counted again if %s is logged", async (_, members) => {
    const access = line({ logger: "http.log.access.log0", msg: "handled request" })
    const { summary } = await readInput(access + line(members) + access)
    expect(summary).toMatchObject({ requests: 2, skipped: 1, unparsed: 0 })
  })

  it.each([[{ msg: "handled request" }], [{}]])("may lack the name of its logger: %j", async (members) => {
    expect((await readInput(line(members))).summary).toMatchObject({ requests: 1 })
  })
})
