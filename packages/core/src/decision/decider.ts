import { StoreUnavailableError } from "../ground/errors.ts"
import { isThenable, type MaybePromise } from "../ground/maybe-promise.ts"
import type { Store, StoreResult } from "../stores/store.ts"
import { withinDeadline } from "../stores/store-error.ts"
import type { BlockWatch } from "./block-watch.ts"
import { type CorrectionOptions, Corrections } from "./corrections.ts"
import type { Decision } from "./decision.ts"
import { DENIED_WITHOUT_RULES, DecisionRecord, UNLIMITED } from "./decision-record.ts"
import { explainAnswer, explainSettled, isSound, isSoundDecision, storeChecksOf } from "./explain-answer.ts"
import { LocalFallback } from "./local-fallback.ts"
import { countRefusals } from "./penalties.ts"
import { canNeverFit, type OnStoreAnswer, RULES_MISSING, type RuleCheck } from "./rule-check.ts"
import { type HealthOptions, StoreHealth } from "./store-health.ts"
import { takeUpTo } from "./take-up-to.ts"

export interface DeciderOptions extends HealthOptions, CorrectionOptions {
  /** Number of instances that share the store. During an outage, each instance grants its share of the limit. */
  readonly instances: number
  /** Notified of the time of each store answer. */
  readonly blocks?: BlockWatch
  /** Called for the first failure of an outage, with what is in force now: "each process admits up to 25 of 100". */
  readonly onDegraded: (error: StoreUnavailableError, inForce: string) => void
}

/**
 * Makes the decisions: checks all the limits of a request in one store call and turns the answer into a decision.
 * Returns a value, not a promise, whenever the store does. `take` and `peek` never throw and never reject: if the store
 * fails or gives an invalid answer, they return a degraded decision.
 */
export class Decider {
  /** Corrects what decisions have counted. */
  readonly corrections: Corrections
  readonly #options: DeciderOptions
  readonly #fallback: LocalFallback
  readonly #health: StoreHealth

  constructor(options: DeciderOptions) {
    this.#options = options
    this.corrections = new Corrections(options)
    this.#fallback = new LocalFallback(options, options.instances, options.clock)
    this.#health = new StoreHealth(options)
  }

  /** Takes the units of every rule check, or refuses and takes none. */
  take(ruleChecks: readonly RuleCheck[], onAnswer?: OnStoreAnswer): MaybePromise<Decision> {
    return this.#decide(ruleChecks, false, onAnswer)
  }

  /** Returns the decision that `take` makes during an outage. For a request that has already waited for the store. */
  takeWithoutStore(ruleChecks: readonly RuleCheck[]): Decision {
    return settledBy(ruleChecks) ?? this.#fallback.decide(ruleChecks, false)
  }

  /**
   * Takes the units only if they fit, without counting a refusal. If refusals count under one of the rules, it peeks
   * first, because a peek counts nothing.
   */
  takeIfItFits(ruleChecks: readonly RuleCheck[], onAnswer?: OnStoreAnswer): MaybePromise<Decision> {
    if (!countRefusals(ruleChecks)) return this.#decide(ruleChecks, false, onAnswer)
    const seen = this.#decide(ruleChecks, true, onAnswer)
    if (isThenable(seen))
      return seen.then((peeked) => (peeked.allowed ? this.take(ruleChecks, onAnswer) : peeked))
    return seen.allowed ? this.take(ruleChecks, onAnswer) : seen
  }

  /** Takes as many units as are available, at most `units`. `ruleChecks` are the checks for one unit. */
  takeUpTo(ruleChecks: readonly RuleCheck[], units: number): Promise<Decision> {
    return takeUpTo(this, ruleChecks, units)
  }

  /** Returns the decision that `take` would make, without counting anything. */
  peek(ruleChecks: readonly RuleCheck[]): MaybePromise<Decision> {
    return this.#decide(ruleChecks, true)
  }

  get store(): Store {
    return this.#options.store
  }

  /** How long a decision waits for the store, in milliseconds. */
  get storeTimeoutMs(): number {
    return this.#options.storeTimeoutMs
  }

  /**
   * True if this decider made the decision, or if nothing was taken. Another decider's units were taken under other
   * rules, so they cannot be refunded here.
   */
  isOwn(decision: Decision): boolean {
    return DecisionRecord.partsOf(decision).every((part) => {
      const receipt = DecisionRecord.receiptOf(part)
      return receipt === undefined || receipt.by === this.#options
    })
  }

  #decide(
    ruleChecks: readonly RuleCheck[],
    peeked: boolean,
    onAnswer?: OnStoreAnswer,
  ): MaybePromise<Decision> {
    const settled = settledBy(ruleChecks)
    if (settled !== undefined) return settled
    const storeChecks = storeChecksOf(ruleChecks)
    let answers: MaybePromise<readonly StoreResult[]>
    try {
      const counted = [storeChecks]
      const { store, storeTimeoutMs } = this.#options
      answers = peeked ? store.peek(counted, storeTimeoutMs) : store.take(counted, storeTimeoutMs)
    } catch (error) {
      return this.degrade(error, ruleChecks, peeked, onAnswer)
    }
    // No closures here: they would cost the synchronous path an allocation.
    return isThenable(answers)
      ? this.#wait(answers, ruleChecks, storeChecks, peeked, onAnswer)
      : this.#conclude(answers, ruleChecks, storeChecks, peeked, onAnswer)
  }

  #wait(
    answers: Promise<readonly StoreResult[]>,
    ruleChecks: readonly RuleCheck[],
    storeChecks: readonly RuleCheck[],
    peeked: boolean,
    onAnswer: OnStoreAnswer | undefined,
  ): Promise<Decision> {
    const { store } = this.#options
    // A custom store may return a thenable, and its `then` may throw.
    const inTime = store.keepsDeadline === true ? Promise.resolve(answers) : this.#inTime(answers)
    return inTime.then(
      (answered) => this.#conclude(answered, ruleChecks, storeChecks, peeked, onAnswer),
      (error: unknown) => this.degrade(error, ruleChecks, peeked, onAnswer),
    )
  }

  /** Enforces the deadline for a store that does not, and measures answers that arrive too late. */
  #inTime(answers: Promise<readonly StoreResult[]>): Promise<readonly StoreResult[]> {
    const sentAtMs = performance.now()
    const inTime = withinDeadline(answers, this.#options.storeTimeoutMs)
    inTime.catch((error: unknown) => {
      if (isTimeout(error)) this.#health.timeLate(answers, sentAtMs)
    })
    return inTime
  }

  #conclude(
    answers: readonly StoreResult[] | undefined,
    ruleChecks: readonly RuleCheck[],
    storeChecks: readonly RuleCheck[],
    peeked: boolean,
    onAnswer: OnStoreAnswer | undefined,
  ): Decision {
    // The answer may come from a custom store, so validate it.
    const answer = answers?.[0]
    const decision = isSound(answer, storeChecks)
      ? this.explain(answer, ruleChecks, storeChecks, peeked, onAnswer)
      : undefined
    if (decision === undefined) return this.degrade(invalidAnswer(), ruleChecks, peeked, onAnswer)
    this.answered(answer as StoreResult)
    return decision
  }

  /** Returns the decision for a sound answer to `storeChecks`. Undefined if the two contradict each other. */
  explain(
    answer: StoreResult,
    ruleChecks: readonly RuleCheck[],
    storeChecks: readonly RuleCheck[],
    peeked: boolean,
    onAnswer?: OnStoreAnswer,
  ): Decision | undefined {
    const decision = explainAnswer(answer, ruleChecks, storeChecks, peeked, this.#options, onAnswer)
    return decision !== undefined && isSoundDecision(decision) ? decision : undefined
  }

  /** Notes that the store has answered. */
  answered({ nowMs, isRemembered, isDegraded, failure }: StoreResult): void {
    const health = this.#health
    const { blocks, onDegraded } = this.#options
    blocks?.answered(nowMs)
    if (isDegraded === true) {
      const began = health.failed(failure ?? unconfirmed())
      if (began !== undefined) onDegraded(began, COUNTED_HERE)
      return
    }
    health.answers++
    if (health.isUnsettled && isRemembered !== true) health.answered()
  }

  /** Notes that the store has failed, and decides without it. */
  degrade(
    error: unknown,
    ruleChecks: readonly RuleCheck[],
    peeked: boolean,
    onAnswer?: OnStoreAnswer,
  ): Decision {
    const began = this.#health.failed(error)
    if (began !== undefined) this.#options.onDegraded(began, this.#fallback.inForce(ruleChecks))
    return this.#fallback.decide(ruleChecks, peeked, onAnswer)
  }
}

/** Returns the decision if the counters cannot change it, otherwise undefined. */
export function settledBy(ruleChecks: readonly RuleCheck[]): Decision | undefined {
  if (ruleChecks.length === 0) return ruleChecks === RULES_MISSING ? DENIED_WITHOUT_RULES : UNLIMITED
  for (let i = 0; i < ruleChecks.length; i++) {
    const ruleCheck = ruleChecks[i] as RuleCheck
    if (canNeverFit(ruleCheck) && !ruleCheck.shadow) return hopeless(ruleChecks)
  }
  return undefined
}

function isTimeout(error: unknown): boolean {
  return error instanceof StoreUnavailableError && error.kind === "timeout"
}

function hopeless(ruleChecks: readonly RuleCheck[]): Decision {
  return new DecisionRecord(ruleChecks.filter(canNeverFit).map(explainSettled), false, undefined)
}

/** Returns the failure of a store whose answer is invalid. */
export function invalidAnswer(): StoreUnavailableError {
  const message = "The store returned an invalid answer. Test the store with @sluice/contracts."
  return new StoreUnavailableError(message, { kind: "invalid-answer" })
}

/** What is in force while a store counts in this process (`writeBackStore`). */
const COUNTED_HERE =
  "each process admits what it knew to be left, and in each later window the limit or its share"

let sharedFailure: StoreUnavailableError | undefined

/** Returns the failure of a store that decided without the shared counters. One error for all, because it is frequent. */
function unconfirmed(): StoreUnavailableError {
  sharedFailure ??= new StoreUnavailableError(
    "The store decided without the shared counters, which have not answered for a while.",
    { kind: "unavailable" },
  )
  return sharedFailure
}
