import { StoreUnavailableError } from "../ground/errors.ts"
import type { MaybePromise } from "../ground/maybe-promise.ts"
import { peekStore } from "../stores/peek-store.ts"
import type { Store, StoreResult } from "../stores/store.ts"
import type { BlockWatch } from "./block-watch.ts"
import { type CorrectionOptions, Corrections } from "./corrections.ts"
import type { Decision } from "./decision.ts"
import {
  DENIED_WITHOUT_RULES,
  type DecisionMaker,
  DecisionRecord,
  HoldingDecision,
  UNLIMITED,
} from "./decision-record.ts"
import { explainAnswer, explainUncountable, storeChecksOf } from "./explain-answer.ts"
import { LocalFallback } from "./local-fallback.ts"
import { countRefusals } from "./penalties.ts"
import { Ledger } from "./permits/ledger.ts"
import type { RenewerOptions } from "./permits/renewer.ts"
import { isHopeless, type OnStoreAnswer, RULES_MISSING, type RuleCheck } from "./rule-check.ts"
import { type HealthOptions, StoreHealth } from "./store-health.ts"
import { takeUpTo } from "./take-up-to.ts"

export interface DeciderOptions extends HealthOptions, CorrectionOptions, RenewerOptions {
  /** Number of instances that share the store. During an outage, each instance grants its share of the limit. */
  readonly instances: number
  /**
   * Called for the first failure of an outage, with a description of what applies now, such as "each process admits
   * up to 25 of 100".
   */
  readonly onDegraded: (error: StoreUnavailableError, inForce: string) => void
}

/**
 * Checks all limits of a request in one store call and converts the result into a decision. Returns a value instead
 * of a promise whenever the store returns a value. `take` and `peek` never throw and never reject. If the store fails
 * or returns an invalid result, they return a degraded decision.
 */
export class Decider implements DecisionMaker {
  /** Corrects the counts of earlier decisions. */
  readonly corrections: Corrections
  /** The permits that this process holds. */
  readonly ledger: Ledger
  /** Receives the time of each store result. Undefined while no client can be blocked. */
  blockWatch: BlockWatch | undefined
  readonly #options: DeciderOptions
  /** Created by the first failure of the store. */
  #localFallback: LocalFallback | undefined
  readonly #health: StoreHealth

  constructor(options: DeciderOptions) {
    this.#options = options
    this.ledger = new Ledger(options)
    this.corrections = new Corrections(options, this.ledger)
    this.#health = new StoreHealth(options)
  }

  /**
   * Takes the units of every rule check, or refuses and takes no units. If `peeked`, returns the same decision but
   * takes no units.
   */
  take(
    ruleChecks: readonly RuleCheck[],
    onAnswer?: OnStoreAnswer,
    peeked: boolean = false,
  ): MaybePromise<Decision> {
    const settled = decidedWithoutCounters(ruleChecks)
    if (settled !== undefined) return settled
    const storeChecks = storeChecksOf(ruleChecks)
    const { store, storeTimeoutMs } = this.#options
    let answer: MaybePromise<StoreResult>
    try {
      answer = peeked
        ? peekStore(store, storeChecks, storeTimeoutMs)
        : store.take(storeChecks, storeTimeoutMs)
    } catch (error) {
      return this.degrade(error, ruleChecks, peeked, onAnswer)
    }
    // No closures here: they would cost the synchronous path an allocation.
    return answer instanceof Promise
      ? this.#wait(answer, ruleChecks, storeChecks, peeked, onAnswer)
      : this.#conclude(answer, ruleChecks, storeChecks, peeked, onAnswer)
  }

  /**
   * Returns the decision that `take` makes during an outage. Used for a request that has already waited for the
   * store.
   */
  takeWithoutStore(ruleChecks: readonly RuleCheck[]): Decision {
    return decidedWithoutCounters(ruleChecks) ?? this.#fallback().decide(ruleChecks, false)
  }

  /**
   * Takes the units only if they fit, without counting a refusal. If refusals count under one of the rules, peeks
   * first, because a peek counts nothing.
   */
  takeIfItFits(ruleChecks: readonly RuleCheck[], onAnswer?: OnStoreAnswer): MaybePromise<Decision> {
    if (!countRefusals(ruleChecks)) return this.take(ruleChecks, onAnswer)
    const seen = this.take(ruleChecks, onAnswer, true)
    if (seen instanceof Promise)
      return seen.then((peeked) => (peeked.allowed ? this.take(ruleChecks, onAnswer) : peeked))
    return seen.allowed ? this.take(ruleChecks, onAnswer) : seen
  }

  /** Takes as many units of one kind as are available, at most `units`. `ruleChecks` are the checks for one unit. */
  takeUpTo(ruleChecks: readonly RuleCheck[], units: number, unit: string): Promise<Decision> {
    return takeUpTo(this, ruleChecks, units, unit)
  }

  /** Returns the decision that `take` would make, without counting anything. */
  peek(ruleChecks: readonly RuleCheck[]): MaybePromise<Decision> {
    return this.take(ruleChecks, undefined, true)
  }

  get store(): Store {
    return this.#options.store
  }

  /** How long a decision waits for the store, in milliseconds. */
  get storeTimeoutMs(): number {
    return this.#options.storeTimeoutMs
  }

  /**
   * True if this decider made the decision, or if the decision took no units. Another decider's units were taken
   * under other rules, so they cannot be refunded here.
   */
  isOwn(decision: Decision): boolean {
    return DecisionRecord.joinedFrom(decision).every((part) => {
      const receipt = DecisionRecord.receiptOf(part)
      return (receipt === undefined || receipt.by === this) && HoldingDecision.isOf(part, this.ledger)
    })
  }

  #wait(
    answer: Promise<StoreResult>,
    ruleChecks: readonly RuleCheck[],
    storeChecks: readonly RuleCheck[],
    peeked: boolean,
    onAnswer: OnStoreAnswer | undefined,
  ): Promise<Decision> {
    return answer.then(
      (answered) => this.#conclude(answered, ruleChecks, storeChecks, peeked, onAnswer),
      (error: unknown) => this.degrade(error, ruleChecks, peeked, onAnswer),
    )
  }

  #conclude(
    answer: StoreResult,
    ruleChecks: readonly RuleCheck[],
    storeChecks: readonly RuleCheck[],
    peeked: boolean,
    onAnswer: OnStoreAnswer | undefined,
  ): Decision {
    const decision = explainAnswer(answer, ruleChecks, storeChecks, peeked, this, onAnswer)
    this.answered(answer)
    return decision
  }

  /** Returns the decision for the store's result of `storeChecks`. */
  explain(
    answer: StoreResult,
    ruleChecks: readonly RuleCheck[],
    storeChecks: readonly RuleCheck[],
    peeked: boolean,
  ): Decision {
    return explainAnswer(answer, ruleChecks, storeChecks, peeked, this, undefined)
  }

  /** Records that the store has responded. */
  answered({ nowMs, isRemembered, isDegraded, failure }: StoreResult): void {
    const health = this.#health
    this.blockWatch?.answered(nowMs)
    if (isDegraded === true) {
      const began = health.failed(failure ?? unconfirmed())
      if (began !== undefined) this.#options.onDegraded(began, COUNTED_HERE)
      return
    }
    health.answers++
    if (health.isWatching && isRemembered !== true) health.answered()
  }

  /** Records that the store has failed, and decides without the store. */
  degrade(
    error: unknown,
    ruleChecks: readonly RuleCheck[],
    peeked: boolean,
    onAnswer?: OnStoreAnswer,
  ): Decision {
    const began = this.#health.failed(error)
    const fallback = this.#fallback()
    if (began !== undefined) this.#options.onDegraded(began, fallback.inForce(ruleChecks))
    return fallback.decide(ruleChecks, peeked, onAnswer)
  }

  #fallback(): LocalFallback {
    const { instances, clock } = this.#options
    this.#localFallback ??= new LocalFallback(this, instances, clock)
    return this.#localFallback
  }
}

/** Returns the decision if no counter can change it. Otherwise returns undefined. */
export function decidedWithoutCounters(ruleChecks: readonly RuleCheck[]): Decision | undefined {
  if (ruleChecks.length === 0) return ruleChecks === RULES_MISSING ? DENIED_WITHOUT_RULES : UNLIMITED
  for (let i = 0; i < ruleChecks.length; i++) {
    const ruleCheck = ruleChecks[i] as RuleCheck
    if (isHopeless(ruleCheck) && !ruleCheck.shadow) return hopeless(ruleChecks)
  }
  return undefined
}

function hopeless(ruleChecks: readonly RuleCheck[]): Decision {
  return new DecisionRecord(ruleChecks.filter(isHopeless).map(explainUncountable), false, undefined)
}

/**
 * The clause for log lines that describes which limits apply while a store counts only in this process
 * (`writeBackStore`).
 */
const COUNTED_HERE =
  "each process admits the remaining units that it knew of, and in each later window the limit or its share"

let sharedFailure: StoreUnavailableError | undefined

/**
 * Returns the failure of a store that decided without the shared counters. All such decisions share one error,
 * because they are frequent.
 */
function unconfirmed(): StoreUnavailableError {
  sharedFailure ??= new StoreUnavailableError(
    "The store decided without the shared counters, which have not responded for a while.",
    { kind: "unavailable" },
  )
  return sharedFailure
}
