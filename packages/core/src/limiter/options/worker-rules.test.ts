import { afterEach, describe, expect, it, vi } from "vitest"
import type { ParsedThrottle } from "../../ground/policy.ts"
import { createWarner } from "../../ground/warnings.ts"
import { parseCodeRules } from "../../rules/parsing/parse-rule.ts"
import type { Rule } from "../../rules/rule.ts"
import { createLimiter } from "../create-limiter.ts"
import { fitWorker } from "./worker-rules.ts"

// test/packages/workers.check.ts applies such rules in the real runtime.

const RATE = { name: "calls", field: "ip", limit: 4, window: "1 minute" } as const
const QUEUE = { maxWaiting: 5, maxWaitMs: 1_000 }

/** Fits a rule twice. Returns its throttle, and the warnings. */
function fitted(rule: Rule): readonly [ParsedThrottle | undefined, readonly string[]] {
  const warnings: string[] = []
  const warner = createWarner(
    { warn: (_fields, message) => void warnings.push(message), error() {} },
    () => {},
  )
  const [parsed] = parseCodeRules([rule], "rules").rules
  if (parsed === undefined) throw new Error("the rule is invalid")
  fitWorker(parsed, warner)
  return [fitWorker(parsed, warner).throttle, warnings]
}

describe("in a Worker, a rule", () => {
  it.each<[string, Rule, ParsedThrottle]>([
    ["with a queue refuses instead", { ...RATE, throttle: { kind: "queue" } }, { kind: "hard" }],
    ["that is elastic by the load is hard", { ...RATE, throttle: { kind: "elastic" } }, { kind: "hard" }],
    [
      "that is soft keeps its percentage but no queue",
      { ...RATE, throttle: { kind: "soft", percent: 50, queue: QUEUE } },
      { kind: "soft", percent: 50 },
    ],
    [
      "with a bucket that leaks delays what the bucket holds, and holds no more",
      { ...RATE, algorithm: "leaky-bucket", throttle: { kind: "queue", maxWaiting: 5 } },
      { kind: "queue", maxWaiting: 0, maxWaitMs: 10_000 },
    ],
  ])("%s, and logs it once", (_what, rule, throttle) => {
    const [found, warnings] = fitted(rule)
    expect(found).toEqual(throttle)
    expect(warnings).toEqual([expect.stringContaining('Rule "calls" ')])
  })

  it("with a signal stays elastic, without its queue", () => {
    const signal = (): boolean => true
    const [found] = fitted({ ...RATE, throttle: { kind: "elastic", signal, queue: QUEUE } })
    expect(found).toMatchObject({ kind: "elastic", signal })
    expect(found).not.toHaveProperty("queue")
  })

  it.each<[string, Rule]>([
    ["that refuses", RATE],
    ["that is soft without a queue", { ...RATE, throttle: { kind: "soft", percent: 50 } }],
    ["that is elastic by a signal", { ...RATE, throttle: { kind: "elastic", signal: () => false } }],
  ])("%s is applied as it is, without a warning", (_what, rule) => {
    const [found, warnings] = fitted(rule)
    expect(found?.kind).toBe(typeof rule.throttle === "object" ? rule.throttle.kind : "hard")
    expect(warnings).toEqual([])
  })

  it("for requests in flight stays, and logs how long a request counts", () => {
    const [, warnings] = fitted({ name: "streams", field: "ip", concurrent: 2, hold: "10 seconds" })
    expect(warnings).toEqual([expect.stringContaining("a request counts for 10000 ms at most")])
  })
})

describe("a limiter whose runtime says that it is a Worker", () => {
  afterEach(() => {
    vi.unstubAllGlobals()
    vi.restoreAllMocks()
  })

  it("rejects rules in code that cannot be applied there, also in a list, and names the rule", () => {
    vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" })
    const queue: Rule = { ...RATE, throttle: { kind: "queue" } }
    expect(() => createLimiter({ limit: 4, window: "1 minute", throttle: { kind: "queue" } })).toThrow(
      "throttle: holds requests in a line, which would hang in a Cloudflare Worker",
    )
    expect(() => createLimiter({ rules: [{ ...RATE, name: "first" }, queue] })).toThrow(
      "rules[1].throttle: holds requests",
    )
    expect(() => createLimiter({ rules: [{ ...RATE, throttle: { kind: "elastic" } }] })).toThrow(
      "without a signal",
    )
  })

  it("writes warnings to the console, because Workers do not print process warnings", () => {
    vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" })
    const warned = vi.spyOn(console, "warn").mockReturnValue()
    createLimiter({ rules: [{ name: "streams", field: "ip", concurrent: 2, hold: "10 seconds" }] })
    expect(warned.mock.calls).toEqual([
      [
        expect.stringContaining(
          '[SLUICE_RULE_NEEDS_NODE] SluiceWarning: Rule "streams" counts requests in flight',
        ),
      ],
    ])
  })
})
