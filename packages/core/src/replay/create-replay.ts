import { isCountable, LATEST_MS } from "../ground/clock.ts"
import { InvalidOptionError } from "../ground/errors.ts"
import { isUnits, PERMITS } from "../ground/policy.ts"
import { show } from "../ground/show.ts"
import { atOnce } from "../ground/slices.ts"
import { createWarner } from "../ground/warnings.ts"
import { CallbackResults } from "../limiter/callbacks/callback-results.ts"
import { createRuleContext } from "../limiter/rule-set/rule-context.ts"
import { compileRuleSet } from "../limiter/rule-set/rule-set.ts"
import { ALL_STEPS } from "../limiter/rule-set/steps.ts"
import type { ParsedRule } from "../rules/rule.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import { parseReplayOptions, type ReplayOptions } from "./options.ts"
import type { Replay, ReplayRequest, ReplayVerdict, UnjudgedRule } from "./replay.ts"
import { UnjudgedRules } from "./unjudged.ts"
import { Verdict } from "./verdict.ts"

/**
 * Creates a replay of rules. Every verdict equals the decision of `Limiter.decide` with the memory store at that
 * time. Elastic throttling is replayed as hard throttling, because a replay has no load, and no request waits in
 * line. Rules with `concurrent` are not applied, because a replay does not know when requests end.
 * @throws {@link InvalidOptionError} with every problem of the options and the rules.
 */
export function createReplay(options: ReplayOptions): Replay {
  return new RuleReplay(options)
}

class RuleReplay implements Replay {
  readonly rules: readonly ParsedRule[]
  readonly #clock = { nowMs: 0, now: () => this.#clock.nowMs }
  readonly #store
  readonly #ruleSet
  readonly #clientOf
  readonly #addressOf
  readonly #unjudged: UnjudgedRules
  readonly #verdict: Verdict

  constructor(options: ReplayOptions) {
    const { maxKeys, rules, ...parsed } = parseReplayOptions(options)
    this.rules = rules
    this.#store = memoryStore({ maxKeys, clock: this.#clock })
    // Discard warnings, because they are about the code of a live app. Rules that a replay cannot judge are in
    // `notJudged`.
    const warner = createWarner({ warn() {}, error() {} }, () => {})
    const context = createRuleContext({ ...parsed, clock: this.#clock }, warner)
    const judged = rules.filter(({ counts }) => counts !== PERMITS)
    this.#ruleSet = atOnce(compileRuleSet(judged.map(asHard), context))
    this.#clientOf = context.clientGroup
    this.#addressOf = context.clientAddress
    this.#unjudged = new UnjudgedRules(rules)
    this.#verdict = new Verdict(this.#store, this.#addressOf)
  }

  offer(request: ReplayRequest): ReplayVerdict {
    if (typeof request !== "object" || request === null) refuse("request", request, "a request", REQUEST)
    const { atMs, cost = 1 } = request
    if (!(isCountable(atMs) && Math.floor(atMs) >= this.#clock.nowMs)) refuseTime(atMs, this.#clock.nowMs)
    if (!isUnits(cost)) refuse("cost", cost, "a valid cost", "0 or a positive whole number")
    this.#clock.nowMs = Math.floor(atMs)
    this.#unjudged.see(request)
    const results = new CallbackResults(request)
    const ruleChecks = this.#ruleSet.ruleChecks(request, results, cost, ALL_STEPS)
    if (results.isPending) throw new InvalidOptionError([PENDING])
    return this.#verdict.on(request, ruleChecks, this.#clientOf(request))
  }

  get notJudged(): readonly UnjudgedRule[] {
    return this.#unjudged.list
  }

  get evictions(): number {
    return this.#store.evictions
  }
}

/** Returns the rule with hard instead of elastic throttling, which depends on the load of a process. */
function asHard(rule: ParsedRule): ParsedRule {
  return rule.throttle.kind === "elastic" ? { ...rule, throttle: { kind: "hard" } } : rule
}

const PENDING = {
  path: "",
  message: "a function in `fields` or in a rule returned a promise, and a replay does not wait",
  accepted: "functions that return the value itself",
}

const REQUEST = 'an object with its time, such as { atMs: 1750000000000, remoteAddress: "192.0.2.7" }'

function refuse(path: string, value: unknown, noun: string, accepted: string): never {
  throw new InvalidOptionError([{ path, message: `${show(value)} is not ${noun}`, accepted }])
}

function refuseTime(atMs: unknown, latestMs: number): never {
  const accepted = `epoch milliseconds from ${latestMs} to ${LATEST_MS}`
  if (!isCountable(atMs)) refuse("atMs", atMs, "a time", accepted)
  const message = `${atMs} is earlier than the request before it`
  throw new InvalidOptionError([
    { path: "atMs", message, accepted: `${accepted}; sort the requests by time` },
  ])
}
