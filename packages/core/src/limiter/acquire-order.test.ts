import { setImmediate as nextTurn } from "node:timers/promises"
import { liveRules, type RuleSource } from "@sluice/rules"
import { describe, expect, it } from "vitest"
import { type Decision, RateLimitExceededError } from "../decision/decision.ts"
import { type ManualClock, manualClock } from "../ground/manual-clock.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import type { RateRule, Rule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { Refund, Store } from "../stores/store.ts"
import { createLimiter } from "./create-limiter.ts"

const QUIET = { warn() {}, error() {} }

interface Caller {
  readonly a: string
  readonly b: string
}

const RULES: readonly RateRule<Caller>[] = [
  { name: "a", limit: 3, window: "1 second", algorithm: "fixed-window", field: "a", onMissing: "skip" },
  { name: "b", limit: 4, window: "1 second", algorithm: "fixed-window", field: "b", onMissing: "skip" },
]
const [RULE_A, RULE_B] = RULES as [RateRule<Caller>, RateRule<Caller>]
/** Cases of rule changes: a name, whether the counters stay the same, and the versions of the rules. */
const EDITIONS: readonly (readonly [string, boolean, readonly (readonly Rule<Caller>[])[]])[] = [
  ["while the rules do not change", true, [RULES]],
  [
    "while limits change",
    true,
    [RULES, [{ ...RULE_A, limit: 6 }, RULE_B], [RULE_A, { ...RULE_B, limit: 3 }]],
  ],
  [
    "while windows and algorithms change, and rules come and go",
    false,
    [
      RULES,
      [{ ...RULE_A, window: "2 seconds" }, RULE_B],
      [{ ...RULE_A, algorithm: "sliding-log" } as Rule<Caller>, { ...RULE_A, name: "c" }],
      [RULE_B],
      [],
    ],
  ],
]
const FIELDS = { a: ({ a }: Caller) => a, b: ({ b }: Caller) => b }

/** Returns a function for pseudo-random integers from 0 to below its argument (Marsaglia's xorshift32). */
function dice(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

/** Returns a memory store that may respond later, and records how many units it has granted under each rule. */
function tellingStore(clock: ManualClock, answerLater: <T>(value: T) => MaybePromise<T>) {
  const inner = memoryStore({ clock })
  const given = new Map<string, number>()
  const give = (name: string, units: number) => given.set(name, (given.get(name) ?? 0) + units)
  const calls = { takes: 0, refused: 0 }
  const store: Store = {
    take(checks) {
      calls.takes++
      const answer = inner.take(checks)
      if (!answer.granted) calls.refused++
      answer.checks.forEach((counted, i) => {
        give(checks[i]?.policy.name as string, counted?.taken ?? 0)
      })
      return answerLater(answer)
    },
    read: (checks) => inner.read(checks),
    refund(refunds: readonly Refund[]) {
      for (const { policy, units } of refunds) give(policy.name, -units)
      inner.refund(refunds)
    },
    reset: (keys) => inner.reset(keys),
    close: () => inner.close(),
  }
  return { store, given, calls }
}

type Answering = (roll: (below: number) => number) => <T>(value: T) => MaybePromise<T>

const ANSWERS: readonly (readonly [string, Answering])[] = [
  ["immediately", () => (value) => value],
  ["in a later turn", () => async (value) => nextTurn(value)],
  [
    "out of order",
    (roll) => async (value) => {
      for (let turns = roll(6); turns > 0; turns--) await nextTurn()
      return value
    },
  ],
]

/** Returns a source of rules that change whenever they are published. */
function publishing(first: readonly Rule<Caller>[]) {
  let rules = first
  const listeners = new Set<() => void>()
  const source: RuleSource = {
    load: async () => ({ rules: rules as readonly Rule[], problems: [] }),
    watch(changed) {
      listeners.add(changed)
      return () => void listeners.delete(changed)
    },
  }
  const publish = (next: readonly Rule<Caller>[]) => {
    rules = next
    for (const changed of listeners) changed()
  }
  return { source, publish }
}

describe.each(ANSWERS)("with a store that responds %s", (how, answering) => {
  it.each(EDITIONS)(
    "no request overtakes another for the same counters, and unused units are refunded: %s",
    async (_when, areSameCounters, editions) => {
      let waited = 0
      for (let seed = 1; seed <= 25; seed++) {
        const roll = dice(seed * 7_919)
        const clock = manualClock()
        const { store, given, calls } = tellingStore(clock, answering(roll))
        const { source, publish } = publishing(RULES)
        const limiter = createLimiter<Caller>({
          rules: liveRules(source),
          onRulesMissing: "allow",
          fields: FIELDS,
          clock,
          store,
          storeTimeoutMs: 60_000,
          logger: QUIET,
        })
        await limiter.ready()
        const changeRules = (oneIn: number) => {
          if (editions.length > 1 && roll(oneIn) === 0) publish(editions[roll(editions.length)] ?? RULES)
        }
        const log: { readonly at: number; readonly caller: Caller; readonly cost: number }[] = []
        const used = new Map<string, number>()
        const ended: Promise<void>[] = []
        for (let at = 0; at < 40; at++) {
          const caller = { a: `a${roll(3)}`, b: `b${roll(3)}` }
          const cost = 1 + roll(3)
          const aborting = new AbortController()
          const leaving = roll(5)
          const options = leaving === 0 ? { maxWaitMs: roll(3_000) } : { signal: aborting.signal }
          const acquiring = limiter.acquire(caller, { cost, ...options, maxWaiting: 1_000 })
          const admit = ({ checks }: Decision) => {
            log.push({ at, caller, cost })
            for (const { policy } of checks) used.set(policy, (used.get(policy) ?? 0) + cost)
          }
          const refuse = (error: unknown) => {
            expect(error === "enough" || error instanceof RateLimitExceededError).toBe(true)
          }
          ended.push(acquiring.then(admit, refuse))
          if (leaving === 1) void clock.wait(1 + roll(4_000)).then(() => aborting.abort("enough"))
          changeRules(7)
          if (roll(3) === 0) await nextTurn()
          if (roll(6) === 0) clock.advance(roll(400))
        }
        let isOver = false
        void Promise.all(ended).then(() => {
          isOver = true
        })
        for (let steps = 0; !isOver; steps++) {
          expect(steps).toBeLessThan(2_000)
          changeRules(12)
          clock.advance(100)
          for (let turns = 0; turns < 8; turns++) await nextTurn()
        }
        // If a request is being decided while its counter changes, requests for the new counter may overtake it.
        const isOrdered = how === "immediately" || areSameCounters
        log.forEach(({ at, caller }, i) => {
          for (const later of log.slice(i + 1)) {
            const isSame = later.caller.a === caller.a && later.caller.b === caller.b
            if (isOrdered && isSame && later.at < at)
              expect.unreachable(`seed ${seed}: ${at} went before ${later.at}`)
          }
        })
        for (const [name, units] of given) if (units === 0) given.delete(name)
        expect([seed, given]).toEqual([seed, used])
        await limiter.close()
        expect(log.length).toBeGreaterThan(15)
        waited += calls.refused
      }
      expect(waited).toBeGreaterThan(100)
    },
    // The test sends a thousand requests, which takes seconds on a busy machine.
    60_000,
  )
})
