import { randomUUID } from "node:crypto"
import { type Decision, type DecisionCall, explainDecision, type Limiter, type Refusal } from "@sluice/core"
import { type BoundedRecords, PROCESS_BUDGET, type RecordBudget } from "./record-budget.ts"
import type { RecorderTime } from "./recorder-time.ts"
import { RuleRecorder, SAMPLED } from "./rule-recorder.ts"
import {
  type ActivitySnapshot,
  NOTHING,
  OTHERS,
  type RecentRefusal,
  type RulesState,
  type ServiceSums,
  SLOT_MS,
} from "./snapshot.ts"

/** Most rules that are recorded one by one. */
const MOST_RULES = 200
/** Most refusals that are kept. */
const MOST_REFUSALS = 200
/** What a kept refusal takes. */
const REFUSAL_BYTES = 700

/** A refusal whose sentence is written when somebody reads it. */
interface KeptRefusal {
  readonly decision: Decision
  readonly key: string
  readonly atMs: number
}

/**
 * Records what a limiter decides, in bounded memory: the outcomes of each rule, the clients that are refused most, and
 * the last refusals.
 */
export class ActivityRecorder<Request> implements BoundedRecords {
  readonly service: string
  readonly #limiter: Limiter<Request>
  readonly #time: RecorderTime
  readonly #instance = randomUUID()
  readonly #budget: RecordBudget
  readonly #self = new WeakRef<BoundedRecords>(this)
  #sinceMs: number
  readonly #rules = new Map<string, RuleRecorder>()
  /** The recorders of the rules of the latest decision. The next decision usually has the same rules. */
  readonly #latest: RuleRecorder[] = []
  /** The last refusals, as a ring. */
  readonly #refusals: KeptRefusal[] = []
  #refusalCount = 0
  #dropAgainMs = 0
  /** The second of the latest decision. */
  #second = 0
  #random = 1

  /** Records the limiter until it is closed or `stop` is called. */
  constructor(limiter: Limiter<Request>, time: RecorderTime, budget: RecordBudget = PROCESS_BUDGET) {
    this.#limiter = limiter
    this.#time = time
    this.#budget = budget
    this.service = limiter.status.service
    this.#sinceMs = time.now()
    limiter.on("decided", this.#add)
  }

  /** Stops recording. What has been recorded can still be read. */
  stop(): void {
    this.#limiter.off("decided", this.#add)
    this.#budget.release(this.#self)
  }

  forget(): void {
    this.#rules.clear()
    this.#latest.length = 0
    this.#refusals.length = 0
    this.#refusalCount = 0
    this.#sinceMs = this.#time.now()
  }

  /** Returns what has been recorded, with at most this many refusals. */
  snapshot(mostRefusals: number = MOST_REFUSALS): ActivitySnapshot {
    const nowMs = this.#time.now()
    const { status, rules } = this.#limiter
    return {
      instance: this.#instance,
      service: this.service,
      sinceMs: this.#sinceMs,
      atMs: nowMs,
      rules: [...this.#rules.values()].map((rule) => rule.read(nowMs)),
      refusals: this.#latestRefusals(mostRefusals),
      status,
      rulesStatus: stateOf(rules),
    }
  }

  /** Returns the sums over all rules. Takes much less time than a snapshot. */
  sums(): ServiceSums {
    const nowMs = this.#time.now()
    const sums = { seconds: { ...NOTHING }, slots: { ...NOTHING } }
    for (const rule of this.#rules.values()) rule.addTo(sums, nowMs)
    return { service: this.service, instances: 1, sinceMs: this.#sinceMs, ...sums }
  }

  readonly #add = (decision: Decision, counters: DecisionCall["counters"]): void => {
    const { checks, degraded, allowed, shadowed } = decision
    const second = this.#time.second()
    if (second !== this.#second) {
      this.#second = second
      this.#budget.grow(this.#self, 0)
    }
    const isSampled = this.#isSampled()
    // Usually neither is the case, and then the time is not needed. Reading it may cost more than all the rest.
    const nowMs = isSampled || !allowed || shadowed.length > 0 ? this.#time.now() : 0
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as Decision["checks"][number]
      const { policy } = check
      let rule = this.#latest[i]
      if (rule?.rule !== policy) {
        rule = this.#recorderOf(policy)
        this.#latest[i] = rule
      }
      rule.count(check, degraded, second)
      if (isSampled) rule.sample(partitionOf(policy, i, counters), nowMs)
      if (!check.allowed) rule.refuse(check, partitionOf(policy, i, counters), nowMs)
    }
    if (!allowed) this.#keep(decision, counters, nowMs)
  }

  readonly #grow = (bytes: number): void => {
    if (bytes < 0) this.#budget.release(this.#self, -bytes)
    else this.#budget.grow(this.#self, bytes)
  }

  /** True for one of 16 decisions at random, because requests may come in a fixed order. */
  #isSampled(): boolean {
    // A linear congruential generator (Numerical Recipes), whose high bits are random enough.
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) | 0
    return this.#random >>> 0 < 2 ** 32 / SAMPLED
  }

  #recorderOf(policy: string): RuleRecorder {
    if (this.#rules.size >= MOST_RULES && !this.#rules.has(policy)) this.#dropIdle()
    const name = this.#rules.has(policy) || this.#rules.size < MOST_RULES ? policy : OTHERS
    let rule = this.#rules.get(name)
    if (rule === undefined) {
      rule = new RuleRecorder(name, this.#grow)
      this.#rules.set(name, rule)
    }
    return rule
  }

  /** Drops the rules that have decided nothing for a day. Looks for them at most once in a slot. */
  #dropIdle(): void {
    const nowMs = this.#time.now()
    if (nowMs < this.#dropAgainMs) return
    this.#dropAgainMs = nowMs + SLOT_MS
    for (const [name, rule] of this.#rules) {
      if (!rule.isIdle(nowMs)) continue
      this.#rules.delete(name)
      this.#grow(-rule.bytes)
    }
    this.#latest.length = 0
  }

  #keep(decision: Decision, counters: DecisionCall["counters"], atMs: number): void {
    const key = partitionOf(decision.policy, 0, counters)
    if (this.#refusalCount < MOST_REFUSALS) this.#grow(REFUSAL_BYTES)
    this.#refusals[this.#refusalCount++ % MOST_REFUSALS] = { decision: withoutOthers(decision), key, atMs }
  }

  #latestRefusals(most: number): readonly RecentRefusal[] {
    const first = this.#refusalCount % MOST_REFUSALS
    const oldestFirst = [...this.#refusals.slice(first), ...this.#refusals.slice(0, first)]
    return oldestFirst.reverse().slice(0, most).map(recentRefusal)
  }
}

/** Leaves out the checks of all rules but the binding one, because many rules may need several kilobytes. */
function withoutOthers(decision: Decision): Decision {
  // A copy costs as much as everything else that is recorded of a refusal.
  if (decision.checks.length < 2) return decision
  return { ...decision, checks: decision.checks.filter(({ policy }) => policy === decision.policy) }
}

/** Returns the client's part of a rule's counter. The counters of most decisions are in the order of its checks. */
function partitionOf(policy: string, at: number, counters: DecisionCall["counters"]): string {
  const counter = counters[at]
  if (counter?.policy.name === policy) return counter.partition
  return counters.find((each) => each.policy.name === policy)?.partition ?? ""
}

function recentRefusal({ decision, key, atMs }: KeptRefusal): RecentRefusal {
  const { policy, refusal, retryAfterMs } = decision
  // A kept decision has one check at most. The sentence on a refusal of the group comes after that of its check.
  const explained = explainDecision(decision, { atMs }).at(-1)
  return {
    atMs,
    rule: explained?.policy ?? policy,
    key,
    reason: refusal as Refusal,
    retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : null,
    text: explained?.text ?? "",
  }
}

function stateOf({ version, loadedAtMs, isStale, problems, error }: Limiter["rules"]): RulesState {
  const wrong = problems.map(({ path, message }) => `${path}: ${message}`)
  return {
    ...(version !== undefined && { version }),
    ...(loadedAtMs !== undefined && { loadedAtMs }),
    isStale,
    problems: error === undefined ? wrong : [...wrong, error.message],
  }
}
