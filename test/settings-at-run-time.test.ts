import { InvalidRuleError } from "@sluice/core"
import * as adapter from "@sluice/express"
import * as redis from "@sluice/redis"
import express from "express"
import { expect, it } from "vitest"
import { ask, type Response } from "./contracts/adapter/ask.ts"
import type { Block } from "./docs/blocks.ts"
import { blocksTestedBy } from "./docs/shown.ts"
import { onStandingClock } from "./docs/standing-clock.ts"
import { runTypeScript } from "./docs/typescript/run.ts"
import { listening } from "./servers/listening.ts"
import { redisForTests } from "./servers/redis-for-tests.ts"
import { until } from "./servers/until.ts"

// Runs the code of docs/reference/options.md, and changes its settings between requests.

const DOCUMENT = "docs/reference/options.md"
const [functions, rules, another] = blocksTestedBy("test/settings-at-run-time.test.ts", DOCUMENT, 3) as [
  Block,
  Block,
  Block,
]
const { client, server } = await redisForTests()
const { rateLimit } = onStandingClock("@sluice/express", adapter)
const { redisStore } = onStandingClock("@sluice/redis", redis)

/** Runs a block in an app. Resolves to what the block declares, and to functions that send requests to the app. */
async function run<Declared>(block: Block, given: object = {}) {
  let arrivals = 0
  const app = express().use((_req, _res, next) => {
    arrivals += 1
    next()
  })
  const declared = (await runTypeScript(block, { app, rateLimit, ...given })) as Declared
  const url = await listening(app.use((_req, res) => void res.send("ok")))
  const send = (): Promise<Response> => ask(url, "/")
  const remaining = async () => /r=(\d+)/.exec((await send()).headers.ratelimit ?? "")?.[1]
  return { declared, send, remaining, arrived: () => arrivals }
}

it("a limit and a switch that functions return change with the next request, and the counts stay", async () => {
  const { declared, send, remaining } = await run<{ flags: { limit: number; isOff: boolean } }>(functions)
  expect([await remaining(), await remaining()]).toEqual(["99", "98"])
  declared.flags.limit = 3
  expect([await remaining(), (await send()).status]).toEqual(["0", 429])
  declared.flags.isOff = true
  expect((await send()).status).toBe(200)
})

it("rules in code change with refresh, and stay if the new rules are invalid", async () => {
  const { declared, send, remaining } = await run<{ setLimit(limit: number): Promise<void> }>(rules)
  expect([await remaining(), await remaining()]).toEqual(["99", "98"])
  await declared.setLimit(3)
  expect([await remaining(), (await send()).status]).toEqual(["0", 429])
  await expect(declared.setLimit(-1)).rejects.toThrow(InvalidRuleError)
  expect((await send()).status).toBe(429)
  await declared.setLimit(10)
  expect(await remaining()).toBe("6")
})

it("a new limiter takes over between requests, continues the counts, and fails none that is in progress", async () => {
  const { declared, send, arrived } = await run<{ sendOldHeaders(): Promise<void> }>(another, {
    client,
    redisStore,
  })
  server.freeze()
  const sent = Array.from({ length: 20 }, send)
  await until("all requests have arrived", () => arrived() === 20)
  const closed = declared.sendOldHeaders()
  server.thaw()
  const statuses = (await Promise.all(sent)).map(({ status }) => status)
  expect(statuses).toEqual(statuses.map(() => 200))
  await closed
  const { headers } = await send()
  expect(headers).toMatchObject({ "x-ratelimit-limit": "100", "x-ratelimit-remaining": "79" })
  expect(headers).not.toHaveProperty("ratelimit")
})
