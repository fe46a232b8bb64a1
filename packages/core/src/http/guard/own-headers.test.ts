import { describe, expect, it } from "vitest"
import { manualClock } from "../../ground/manual-clock.ts"
import type { HeadersOption } from "../../limiter/options/header-formats.ts"
import type { LimiterOptions } from "../../limiter/options/options.ts"
import type { RequestFacts } from "../../request/request.ts"
import { createGuard } from "./create-guard.ts"
import type { Outcome } from "./mount-outcome.ts"

const clock = manualClock(1_704_067_200_000)
const CLIENT: RequestFacts = { remoteAddress: "192.0.2.1" }

function guardOf(options: Partial<LimiterOptions<object>>) {
  return createGuard<object>({ limit: 2, window: "1 minute", clock, ...options } as LimiterOptions<object>)
}

async function linesOf(headers: HeadersOption): Promise<unknown> {
  const { headers: lines } = await guardOf({ headers }).check(CLIENT, {})
  return Object.fromEntries(lines)
}

const DRAFT = { "RateLimit-Policy": '"ip-1m";q=2;w=60', RateLimit: '"ip-1m";r=1;t=61' }

describe("headers", () => {
  it("of several dialects are sent together", async () => {
    expect(await linesOf(["draft-11", "legacy"])).toEqual({
      ...DRAFT,
      "X-RateLimit-Limit": "2",
      "X-RateLimit-Remaining": "1",
      "X-RateLimit-Reset": "1704067261",
    })
  })

  it.each<[HeadersOption, unknown]>([
    [
      { dialect: "legacy", prefix: "X-App-RateLimit" },
      {
        "X-App-RateLimit-Limit": "2",
        "X-App-RateLimit-Remaining": "1",
        "X-App-RateLimit-Reset": "1704067261",
      },
    ],
    [
      ["draft-11", { dialect: "triple", prefix: "X", names: { limit: "Total" } }],
      { ...DRAFT, Total: "2", "X-Remaining": "1", "X-Reset": "61", "X-Policy": "2;w=60" },
    ],
    [
      { dialect: "draft-11", prefix: "App-Quota" },
      { "App-Quota-Policy": '"ip-1m";q=2;w=60', "App-Quota": '"ip-1m";r=1;t=61' },
    ],
    [
      { dialect: "next", names: { policy: "Rules", limit: "Left" } },
      { Rules: '"ip-1m";q=2;w=60', Left: '"ip-1m";a=1;w=61;c=1' },
    ],
    [false, {}],
  ])("are named as the option %j says", async (headers, expected) => {
    expect(await linesOf(headers)).toEqual(expected)
  })
})

describe("two mounts", () => {
  async function checkedBy(
    first: Partial<LimiterOptions<object>>,
    second: Partial<LimiterOptions<object>>,
  ): Promise<Outcome> {
    const request = {}
    await guardOf({ name: "first", ...first }).check(CLIENT, request)
    return guardOf({ name: "second", ...second }).check(CLIENT, request)
  }

  it.each([
    ["the first mount", 1, 5, "1"],
    ["the second mount", 5, 1, "1"],
  ])("join their lists under the app's own names if %s is stricter", async (_which, one, two, limit) => {
    const headers = [{ dialect: "draft-11", prefix: "Quota" }, "legacy"] as const
    const { headers: lines } = await checkedBy({ headers, limit: one }, { headers, limit: two })
    expect(Object.fromEntries(lines)).toMatchObject({
      "Quota-Policy": `"first";q=${one};w=60, "second";q=${two};w=60`,
      Quota: `"first";r=${one - 1};t=61, "second";r=${two - 1};t=61`,
      "X-RateLimit-Limit": limit,
    })
  })

  it("send separate lists if their header names differ", async () => {
    const { headers: lines } = await checkedBy(
      { headers: { dialect: "triple", prefix: "X" } },
      { headers: "draft-11", limit: 1 },
    )
    expect(Object.fromEntries(lines)).toEqual({
      "X-Policy": "2;w=60",
      "RateLimit-Policy": '"second";q=1;w=60',
      RateLimit: '"second";r=0;t=61',
    })
  })
})
