import type { CounterState } from "../algorithms/algorithm.ts"
import { StoreUnavailableError } from "../ground/errors.ts"
import { isThenable, type MaybePromise } from "../ground/maybe-promise.ts"
import type { CounterKey, Refund, StoreResult } from "../stores/store.ts"
import type { BlockWatch } from "./block-watch.ts"
import type { Decision } from "./decision.ts"
import { DENIED_WITHOUT_RULES, DecisionRecord, type Receipt, UNLIMITED } from "./decision-record.ts"
import { explainAnswer, explainSettled, isSound, isSoundDecision, storeChecksOf } from "./explain-answer.ts"
import { LocalFallback } from "./local-fallback.ts"
import { countRefusals } from "./penalties.ts"
import {
  applyRefunds,
  backgroundMs,
  type Correction,
  correctionFailed,
  isNotApplied,
  within,
} from "./refunding.ts"
import { canNeverFit, type OnStoreAnswer, RULES_MISSING, type RuleCheck } from "./rule-check.ts"
import { partOf, refundsOf, settlementOf } from "./settlement.ts"
import { withinDeadline } from "./store-error.ts"
import { type HealthOptions, StoreHealth } from "./store-health.ts"
import { takeUpTo } from "./take-up-to.ts"

export interface DeciderOptions extends HealthOptions {
  /** Instances that share the store: each takes its part of the limit while the store is gone. */
  readonly instances: number
  /** Told of each answer of the store. */
  readonly blocks?: BlockWatch
  /** Each refund that nobody waited for and that failed: its units may stay taken until their window passes. */
  readonly onRefundLost: (error: unknown) => void
}

/**
 * The decision maker: asks the store once for all the limits of a request, and says what the answer means. Answers
 * with a value whenever the store does. `take` and `peek` never throw and never reject: a store that is gone, or that
 * answers rubbish, is a degraded decision.
 */
export class Decider {
  readonly #options: DeciderOptions
  readonly #fallback: LocalFallback
  readonly #health: StoreHealth

  constructor(options: DeciderOptions) {
    this.#options = options
    this.#fallback = new LocalFallback(options, options.instances, options.clock)
    this.#health = new StoreHealth(options)
  }

  /** Takes the units of every rule check, or refuses and takes none. */
  take(ruleChecks: readonly RuleCheck[], onAnswer?: OnStoreAnswer): MaybePromise<Decision> {
    return this.#decide(ruleChecks, false, onAnswer)
  }

  /** Decides as `take` does when the store is gone, for a request that has already waited for it. */
  takeWithoutStore(ruleChecks: readonly RuleCheck[]): Decision {
    return settledBy(ruleChecks) ?? this.#fallback.decide(ruleChecks, false)
  }

  /** The same for who asks in order to find out: where refusals count it looks first, and a look counts nothing. */
  takeIfItFits(ruleChecks: readonly RuleCheck[], onAnswer?: OnStoreAnswer): MaybePromise<Decision> {
    if (!countRefusals(ruleChecks)) return this.#decide(ruleChecks, false, onAnswer)
    const seen = this.#decide(ruleChecks, true, onAnswer)
    if (isThenable(seen))
      return seen.then((peeked) => (peeked.allowed ? this.take(ruleChecks, onAnswer) : peeked))
    return seen.allowed ? this.take(ruleChecks, onAnswer) : seen
  }

  /** As many units as there are, `units` at most; `asks` are those of one unit. */
  takeUpTo(ruleChecks: readonly RuleCheck[], units: number): Promise<Decision> {
    return takeUpTo(this, ruleChecks, units)
  }

  /** The decision that `take` would make, counting nothing. */
  peek(ruleChecks: readonly RuleCheck[]): MaybePromise<Decision> {
    return this.#decide(ruleChecks, true)
  }

  /** Whether units can be given back here: another one's were taken under other rules. Also where there are none. */
  isOwn(decision: Decision): boolean {
    return DecisionRecord.partsOf(decision).every((part) => {
      const receipt = DecisionRecord.receiptOf(part)
      return receipt === undefined || receipt.by === this.#options
    })
  }

  /**
   * Gives back what the decision took, once; nothing when it took nothing. Returns the counters that have more units now.
   * Rejects when the store fails; then the refund can be called again if it certainly changed nothing.
   */
  async refund(decision: Decision): Promise<readonly CounterKey[]> {
    return this.#correct("refund", decision, refundsOf)
  }

  /**
   * Gives back what the decision took without a caller that waits for it: it may take longer, and never rejects. With
   * `isMeant`, gives back what it took from such counters, and leaves the rest for another time. Returns the counters that
   * have more units now.
   */
  async refundInBackground(
    decision: Decision,
    isMeant?: (counter: CounterKey) => boolean,
  ): Promise<readonly CounterKey[]> {
    const receipt = DecisionRecord.takeReceipt(decision)
    if (receipt === undefined) return NONE
    let meant = receipt
    if (isMeant !== undefined) {
      meant = partOf(receipt, isMeant)
      const rest = partOf(receipt, (counter) => !isMeant(counter))
      DecisionRecord.leaveReceipt(decision, rest)
    }
    const withinMs = backgroundMs(this.#options.storeTimeoutMs)
    try {
      return await applyRefunds(receipt.store, refundsOf(meant), withinMs, false)
    } catch (error) {
      this.#options.onRefundLost(error)
      return NONE
    }
  }

  /**
   * Gives back what the decision took above `units`, or charges what is missing, once; nothing after a refund, and
   * nothing of a refused decision or one that no rule applied to. Returns the counters that have more units now. Rejects as
   * `refund` does.
   */
  async settle(decision: Decision, units: number): Promise<readonly CounterKey[]> {
    return this.#correct("settle", decision, (receipt) => settlementOf(receipt, units))
  }

  /** Forgets the counters; `call` is what an error calls it. */
  async reset(keys: readonly CounterKey[], call: "reset" | "unblock" = "reset"): Promise<void> {
    if (keys.length === 0) return
    const { store, storeTimeoutMs } = this.#options
    try {
      await within(store, store.reset(keys, storeTimeoutMs), storeTimeoutMs)
    } catch (error) {
      throw correctionFailed(call, error)
    }
  }

  /** Blocks the counters, which are of penalties, for this long, unless a longer block is in force. Rejects as `reset` does. */
  async block(keys: readonly CounterKey[], forMs: number): Promise<void> {
    const { store, storeTimeoutMs } = this.#options
    // A penalty is charged in milliseconds of a block.
    const charges = keys.map((key): Refund => ({ ...key, units: -forMs, after: NOTHING }))
    try {
      await within(store, store.refund(charges, storeTimeoutMs), storeTimeoutMs)
    } catch (error) {
      throw correctionFailed("block", error)
    }
  }

  async #correct(
    call: Correction,
    decision: Decision,
    refundsFor: (receipt: Receipt) => readonly Refund[],
  ): Promise<readonly CounterKey[]> {
    const receipt = DecisionRecord.takeReceipt(decision)
    if (receipt === undefined) return NONE
    try {
      return await applyRefunds(receipt.store, refundsFor(receipt), this.#options.storeTimeoutMs, true)
    } catch (error) {
      if (isNotApplied(error)) DecisionRecord.leaveReceipt(decision, receipt)
      throw correctionFailed(call, error)
    }
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
      return this.#degrade(error, ruleChecks, peeked, onAnswer)
    }
    // A closure in here would be paid for by the decisions, too, that wait for nothing.
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
    // A store that others wrote may answer with a thenable, and that one's `then` may throw.
    const inTime = store.keepsDeadline === true ? Promise.resolve(answers) : this.#inTime(answers)
    return inTime.then(
      (answered) => this.#conclude(answered, ruleChecks, storeChecks, peeked, onAnswer),
      (error: unknown) => this.#degrade(error, ruleChecks, peeked, onAnswer),
    )
  }

  /** Watches the time for a store that does not, and measures the answers that come too late. */
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
    // Anybody may have written the store.
    const answer = answers?.[0]
    const decision = isSound(answer, storeChecks)
      ? explainAnswer(answer, ruleChecks, storeChecks, peeked, this.#options, onAnswer)
      : undefined
    if (decision === undefined || !isSoundDecision(decision)) {
      const error = new StoreUnavailableError("The store gave an answer that makes no sense.", {
        kind: "invalid-answer",
      })
      return this.#degrade(error, ruleChecks, peeked, onAnswer)
    }
    const health = this.#health
    health.answers++
    const { nowMs, isRemembered } = answer as StoreResult
    this.#options.blocks?.answered(nowMs)
    if (health.isUnsettled && isRemembered !== true) health.answered()
    return decision
  }

  #degrade(
    error: unknown,
    ruleChecks: readonly RuleCheck[],
    peeked: boolean,
    onAnswer: OnStoreAnswer | undefined,
  ): Decision {
    this.#health.failed(error)
    return this.#fallback.decide(ruleChecks, peeked, onAnswer)
  }
}

/** Returns the decision that no counter can change, if there is one. */
function settledBy(ruleChecks: readonly RuleCheck[]): Decision | undefined {
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

const NONE: readonly CounterKey[] = []
const NOTHING: CounterState = { startMs: 0, current: 0, previous: 0 }
