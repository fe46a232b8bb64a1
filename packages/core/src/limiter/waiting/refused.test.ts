import { describe, expect, it } from "vitest"
import type { Decision } from "../../decision/decision.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import { deciderOver, ruleCheck, SECOND } from "../../decision/testing/rule-checks.ts"
import { manualClock } from "../../ground/manual-clock.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import { refusedAtClose, refusedBehind, refusedForDelay } from "./refused.ts"

const [one, other] = [ruleCheck("one", 1), ruleCheck("other", 1)]
const trial = { ...ruleCheck("trial", 1), shadow: true }

/** Returns the verdict of each rule, with its name. */
const told = ({ checks }: Decision) =>
  checks.map(({ policy, allowed, refusal, retryAfterMs }) => [policy, allowed, refusal, retryAfterMs])

describe("the refusal of a request that would wait behind others", () => {
  it("names only the rules that it would wait for, omits shadow rules, and is not degraded", () => {
    const refused = refusedBehind([one, trial, other], [other], SECOND)
    expect(refused).toMatchObject({ allowed: false, policy: "other", retryAfterMs: SECOND, degraded: false })
    expect(told(refused)).toEqual([
      ["one", true, undefined, 0],
      ["other", false, "quota", SECOND],
    ])
  })

  it("names requests in progress as the reason if it would wait for a permit", () => {
    const permits = ruleCheck("permits", 1, 1, { algorithm: "in-flight" })
    expect(told(refusedBehind([one, permits], [one, permits], SECOND))).toEqual([
      ["one", false, "quota", SECOND],
      ["permits", false, "in-flight", SECOND],
    ])
  })
})

describe("the refusal of a waiting request when the service shuts down", () => {
  it("names all enforced rules as a store failure would, and no shadow rule", () => {
    const refused = refusedAtClose([one, trial])
    expect(refused).toMatchObject({ allowed: false, degraded: true, shadowed: [] })
    expect(told(refused)).toEqual([["one", false, "store-failure", SECOND]])
  })
})

describe("the refusal of a request with too long a delay", () => {
  /** Returns a check of a bucket that holds its second request for `delayMs`. */
  const leaky = (name: string, delayMs: number, rejectionMessage?: string): RuleCheck => ({
    ...ruleCheck(name, SECOND / delayMs, 1, { algorithm: "leaky-bucket", burst: 5 }),
    rejectionMessage,
  })

  async function grantedSecond(ruleChecks: readonly RuleCheck[]): Promise<Decision> {
    const clock = manualClock()
    const decider = deciderOver(memoryStore({ clock }), clock)
    await decider.take(ruleChecks)
    return decider.take(ruleChecks)
  }

  it("names only the rules that it waits for and that would delay it beyond its maximum wait", async () => {
    const awaited = [leaky("just", 100, "just so"), leaky("long", 250, "too long"), leaky("silent", 200)]
    const decision = await grantedSecond([...awaited, leaky("told", 500, "not waited for")])
    const refused = refusedForDelay(decision, awaited, 100)
    expect(told(refused)).toEqual([
      ["just", true, undefined, 0],
      ["long", false, "quota", 150],
      ["silent", false, "quota", 100],
      ["told", true, undefined, 0],
    ])
    expect(refused).toMatchObject({ allowed: false, policy: "long", rejectionMessage: "too long" })
    expect(refused.checks.map(({ rejectionMessage }) => rejectionMessage)).toEqual([
      undefined,
      "too long",
      undefined,
      undefined,
    ])
    // Without a rejection message, the property is absent.
    expect(refused.checks.map((check) => "rejectionMessage" in check)).toEqual([false, true, false, false])
  })
})
