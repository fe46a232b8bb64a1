import { liveRules } from "@sluice/rules"
import { describe, expect, it } from "vitest"
import { InvalidOptionError, type Problem } from "../../ground/errors.ts"
import { createLimiter } from "../create-limiter.ts"
import type { Limiter } from "../interface/limiter.ts"
import type { LimiterOptions } from "../options/options.ts"
import { parseAcquireOptions, requireUnits } from "./call-options.ts"

function problemsOf(call: () => unknown): readonly Problem[] {
  try {
    call()
  } catch (error) {
    if (error instanceof InvalidOptionError) return error.problems
    throw error
  }
  return []
}

describe("an invalid option of acquire", () => {
  const SIGNAL = "an AbortSignal"
  const COUNT = "a positive whole number, or Infinity"
  const TIME = "0 or a positive number of milliseconds"
  const PRIORITY = "a whole number from -1000 to 1000"
  const { signal } = new AbortController()
  const half = { aborted: false, throwIfAborted() {}, addEventListener() {} }

  it.each<[string, unknown, string, string]>([
    ["cost", -1, "-1 is not a cost", "0 or a positive whole number"],
    ["cost", "1", '"1" is not a cost; it is a string, use the number 1', "0 or a positive whole number"],
    ["maxWaitMs", -1, "-1 is not a time", TIME],
    ["maxWaitMs", Number.NaN, "NaN is not a time; it was computed from a missing value or from text", TIME],
    ["maxWaitMs", "5", '"5" is not a time; it is a string, use the number 5', TIME],
    ["maxWaiting", 0, "0 is not a number of requests", COUNT],
    ["maxWaiting", 1.5, "1.5 is not a number of requests", COUNT],
    ["maxWaiting", "Infinity", '"Infinity" is not a number of requests', COUNT],
    ["priority", 1_001, "1001 is not a priority", PRIORITY],
    ["priority", -1_001, "-1001 is not a priority", PRIORITY],
    ["priority", 0.5, "0.5 is not a priority", PRIORITY],
    ["priority", "5", '"5" is not a priority; it is a string, use the number 5', PRIORITY],
    ["signal", "now", '"now" is not a signal', SIGNAL],
    ["signal", null, "null is not a signal", SIGNAL],
    ["signal", { ...half, aborted: undefined }, "{} is not a signal", SIGNAL],
    ["signal", { ...half, throwIfAborted: undefined }, '{"aborted":false} is not a signal', SIGNAL],
    ["signal", { ...half, addEventListener: undefined }, '{"aborted":false} is not a signal', SIGNAL],
  ])("is rejected with the accepted values: %s of %j", (path, value, message, accepted) => {
    expect(problemsOf(() => parseAcquireOptions({ [path]: value }, undefined))).toEqual([
      { path, message, accepted },
    ])
  })

  it("is rejected if its name is unknown", () => {
    const accepted = "cost, units, priority, signal, maxWaitMs, maxWaiting"
    expect(problemsOf(() => parseAcquireOptions({ maxWaitms: 5, timeout: 5 } as object, undefined))).toEqual([
      {
        path: "maxWaitms",
        message: '"maxWaitms" is not an option of acquire(); did you mean "maxWaitMs"?',
        accepted,
      },
      {
        path: "timeout",
        message: '"timeout" is not an option of acquire(); use "maxWaitMs" instead',
        accepted,
      },
    ])
  })

  it("is reported together with all others, by a rejected promise", async () => {
    const acquiring = createLimiter({ limit: 1, window: "1 minute" }).acquire({}, { cost: -1, maxWaiting: 0 })
    await expect(acquiring).rejects.toThrow(/cost: .*\n.*maxWaiting: /)
  })

  it("is not reported if all options are valid", () => {
    const good = { priority: -1_000, maxWaitMs: 0, maxWaiting: Number.POSITIVE_INFINITY, signal }
    const amounts = new Map([["requests", 0]])
    expect(parseAcquireOptions({ ...good, cost: 0 }, undefined)).toEqual({ ...good, amounts })
    expect(
      parseAcquireOptions({ maxWaiting: 1, signal: half as unknown as AbortSignal }, undefined),
    ).toMatchObject({
      maxWaiting: 1,
    })
  })
})

it("a cost that is passed without an options object is rejected with the accepted form", async () => {
  const limiter = createLimiter({ limit: 5, window: "1 minute" })
  for (const call of ["decide", "enforce", "peek", "acquire"] as const) {
    const problem = { path: "", message: "3 is not an object of options" }
    await expect(limiter[call]({}, 3 as never)).rejects.toMatchObject({
      problems: [{ ...problem, accepted: "an object such as { cost: 3 }" }],
    })
  }
  expect((await limiter.peek({}, {})).remaining).toBe(5)
})

it("null counts as no options, for untyped code", async () => {
  const limiter = createLimiter({ limit: 2, window: "1 minute", clock: { now: () => 0 } })
  expect((await limiter.decide({}, null as never)).remaining).toBe(1)
  await limiter.ready(null as never)
  await limiter.refresh(null as never)
  await limiter.reset({}, null as never)
  await limiter.unblock({}, null as never)
  expect((await limiter.peek({})).remaining).toBe(2)
})

it("an unknown option of a call is rejected, because a misspelled cost would count as 1", async () => {
  const limiter = createLimiter({ limit: 5, window: "1 minute" })
  for (const call of ["decide", "enforce"] as const) {
    await expect(limiter[call]({}, { cots: 3 } as never)).rejects.toMatchObject({
      problems: [
        {
          path: "cots",
          message: '"cots" is not an option of the call; did you mean "cost"?',
          accepted: "cost, units",
        },
      ],
    })
    await expect(limiter[call]({}, { cost: undefined })).resolves.toMatchObject({ allowed: true })
  }
  await expect(limiter.peek({}, { rule: ["ip-1m"] } as never)).rejects.toThrow(
    '"rule" is not an option of peek(); did you mean "rules"?; accepted: cost, units, rules',
  )
  await expect(limiter.reset({}, { policy: ["ip-1m"] } as never)).rejects.toThrow(
    '"policy" is not an option of reset(); use "rules" instead; accepted: rules',
  )
})

it.each([
  ["nothing", undefined, "is missing"],
  ["a promise that was not awaited", Promise.resolve(), "an instance of Promise is not a decision"],
  ["a request", { headers: { cookie: "secret" } }, "an object is not a decision"],
  ["a number", 3, "3 is not a decision"],
  ["null", null, "null is not a decision"],
  ["an object with a verdict", { allowed: true }, "an object is not a decision"],
  ["an object with a verdict and no units", { allowed: true, cost: 0 }, "an object is not a decision"],
  [
    "a settled promise's result",
    { status: "fulfilled", value: { allowed: true } },
    "an object is not a decision",
  ],
])("a refund or settlement of %s is rejected", async (_what, decision, message) => {
  const limiter = createLimiter({ limit: 5, window: "1 minute" })
  const accepted =
    "the awaited result of decide() or a similar call, or the decision that an adapter put on the request"
  const problems = [{ path: "decision", message, accepted }]
  await expect(limiter.refund(decision as never)).rejects.toMatchObject({ problems })
  await expect(limiter.settle(decision as never, 1)).rejects.toMatchObject({ problems })
})

it("an invalid number of units is rejected with the accepted values", () => {
  expect(problemsOf(() => requireUnits(1.5))).toEqual([
    { path: "units", message: "1.5 is not a number of units", accepted: "0 or a positive whole number" },
  ])
  expect(problemsOf(() => requireUnits(0))).toEqual([])
})

// Such values would all count as one client, so each caller would use up the limit of all others.
describe("an invalid request", () => {
  const CALLS = ["decide", "enforce", "acquire", "takeUpTo", "peek", "reset"] as const
  const given = { limit: 5, window: "1 minute" }
  const whole = { ...given, field: "service" }
  const logger = { warn() {}, error() {} }
  const ask = (limiter: Limiter, call: (typeof CALLS)[number], request: unknown) =>
    call === "takeUpTo" ? limiter.takeUpTo(request as object, 1) : limiter[call](request as object)

  it.each([
    ["nothing", undefined, "is missing"],
    ["null", null, "null is not a request"],
    ["a key, which the message does not contain", "key-of-alice", "a string is not a request"],
    ["a number", 7, "a number is not a request"],
    ["a function", () => ({}), "a function is not a request"],
  ])("is rejected by every call if a rule reads the request: %s", async (_what, request, message) => {
    const accepted =
      'an object such as { remoteAddress: "192.0.2.7" }, or {} if nothing is known about it; ' +
      'a string or a number if "fields" has a function that reads it'
    for (const options of [
      given,
      { ...given, cost: () => 1, skip: () => false },
      { ...given, field: "user_id", onMissing: "skip" as const, fields: {} },
      { ...given, field: "service", match: { methods: ["POST"] } },
      {
        rules: [
          { ...given, field: "service" },
          { ...given, field: "ip" },
        ],
      },
      {
        rules: liveRules({ name: "none", load: async () => ({ rules: [], problems: [] }) }),
        onRulesMissing: "allow" as const,
      },
    ]) {
      const limiter = createLimiter({ ...options, logger })
      for (const call of CALLS) {
        await expect(ask(limiter, call, request)).rejects.toMatchObject({
          code: "SLUICE_INVALID_OPTION",
          problems: [{ path: "request", message, accepted }],
        })
      }
      await limiter.close()
    }
  })

  it.each<[string, LimiterOptions<unknown>]>([
    ["a function of the app reads", { ...given, field: "user", fields: { user: (request) => `${request}` } }],
    ["a function that makes those functions reads", { ...given, field: "user", fields: () => String }],
    ["no rule reads", { ...given, field: "service" }],
    ["none of several rules reads", { rules: [whole, { ...whole, name: "daily", window: "1 day" }] }],
  ])("is accepted if %s the request", async (_who, options) => {
    for (const request of ["alice", 7, undefined]) {
      const limiter = createLimiter<unknown>(options)
      for (const call of CALLS) await ask(limiter as Limiter, call, request)
      expect(await limiter.decide(request)).toMatchObject({ allowed: true, degraded: false })
      await limiter.close()
    }
  })
})

it("acquire rejects null as options, because its wait would be unlimited", async () => {
  const limiter = createLimiter({ limit: 1, window: 1000 })
  await expect(limiter.acquire({}, null as never)).rejects.toMatchObject({ code: "SLUICE_INVALID_OPTION" })
  await limiter.close()
})
