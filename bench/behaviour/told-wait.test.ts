import type { IncomingHttpHeaders } from "node:http"
import { expect, it } from "vitest"
import { toldWaitMs } from "./told-wait.ts"

const NOW = Date.UTC(2024, 0, 1, 12, 0, 0)

it.each<[string, IncomingHttpHeaders, number | undefined]>([
  ["whole seconds", { "retry-after": "17" }, 17_000],
  ["zero seconds", { "retry-after": "0" }, 0],
  ["a date", { "retry-after": "Mon, 01 Jan 2024 12:00:05 GMT" }, 5_000],
  ["a date in the past", { "retry-after": "Mon, 01 Jan 2024 11:00:00 GMT" }, 0],
  ["no wait from a fractional Retry-After, which is invalid", { "retry-after": "0.93" }, undefined],
  ["no wait from a negative number", { "retry-after": "-3" }, undefined],
  ["Retry-After instead of a reset time", { "retry-after": "3", "ratelimit-reset": "9" }, 3_000],
  ["the time in the draft's RateLimit header", { ratelimit: '"ip-1m";r=0;t=12' }, 12_000],
  ["the older draft's RateLimit-Reset as seconds from now", { "ratelimit-reset": "9" }, 9_000],
  ["X-RateLimit-Reset as seconds from now", { "x-ratelimit-reset": "9" }, 9_000],
  ["X-RateLimit-Reset as seconds since the epoch", { "x-ratelimit-reset": `${NOW / 1_000 + 4}` }, 4_000],
  ["no wait from a response without headers", {}, undefined],
])("toldWaitMs reads %s", (_what, headers, waitMs) => {
  expect(toldWaitMs(headers, NOW)).toBe(waitMs)
})
