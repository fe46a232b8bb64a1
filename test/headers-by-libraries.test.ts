import type { HeadersOption } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { rateLimit } from "@sluice/express"
import express from "express"
import { Octokit } from "octokit"
import { parseRateLimit } from "ratelimit-header-parser"
import { describe, expect, it } from "vitest"
import { listening } from "./servers/listening.ts"

/** Serves an app with a limit of one in the minute after the first request. Its clock stands still at the current time. */
async function serve(headers: HeadersOption) {
  const clock = manualClock(Date.now())
  const rule = { limit: 1, window: "1 minute", algorithm: "fixed-window", align: "first-hit" } as const
  const app = express().use(rateLimit({ ...rule, headers, clock }))
  app.use((_req, res) => void res.json({ ok: true }))
  return { clock, url: await listening(app) }
}

/** Sends two requests with Octokit, which may retry a refused one. Returns the statuses and Octokit's waits. */
async function askWithOctokit(headers: HeadersOption) {
  const { clock, url } = await serve(headers)
  const waits: number[] = []
  const octokit = new Octokit({
    baseUrl: url,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    retry: { enabled: false },
    throttle: {
      // Octokit waits for a millisecond instead of a second, and the clock of the limiter advances instead.
      retryAfterBaseValue: 1,
      onRateLimit(seconds: number) {
        waits.push(seconds)
        clock.advance(seconds * 1000)
        return true
      },
      onSecondaryRateLimit: () => false,
    },
  })
  const ask = () => octokit.request("GET /").catch((error: { status: number }) => error)
  return { statuses: [(await ask()).status, (await ask()).status], waits }
}

describe.each<readonly [HeadersOption, octokit: boolean, parser: boolean]>([
  ["draft-11", false, false],
  ["next", false, false],
  ["triple", false, true],
  ["legacy", true, true],
  [["draft-11", "legacy"], true, false],
  [["triple", "legacy"], true, true],
])("the headers %j", (headers, isForOctokit, isForParser) => {
  it(`are ${isForOctokit ? "enough" : "not enough"} for Octokit to wait and to succeed`, async () => {
    const { statuses, waits } = await askWithOctokit(headers)
    expect(statuses).toEqual([200, isForOctokit ? 200 : 429])
    expect(waits.length).toBe(isForOctokit ? 1 : 0)
  })

  it(`are ${isForParser ? "read" : "misread"} by ratelimit-header-parser`, async () => {
    const { url } = await serve(headers)
    const { limit, used, remaining, reset } = parseRateLimit(await fetch(url)) ?? {}
    const expected = isForParser ? [1, 1, 0] : [Number.NaN, Number.NaN, Number.NaN]
    expect([limit, used, remaining]).toEqual(expected)
    if (isForParser) expect(Math.abs(Number(reset) - Date.now() - 60_000)).toBeLessThan(30_000)
  })
})
