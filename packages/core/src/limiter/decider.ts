import { type Clock, soundTime } from "../clock.ts"
import { StoreUnavailableError, textOf } from "../errors.ts"
import type { Answer, Counted, CounterKey, MaybePromise, Refund, Store } from "../stores/store.ts"
import { type Ask, isHopeless } from "./ask.ts"
import type { Decision, PolicyCheck } from "./decision.ts"
import { DecisionRecord, UNLIMITED } from "./decision-record.ts"
import { explainCounted, explainUncounted } from "./explain.ts"
import { LocalFallback } from "./local-fallback.ts"

export interface DeciderOptions {
  readonly store: Store
  /** Milliseconds from the moment of the call after which a silent store counts as gone. */
  readonly storeTimeoutMs: number
  /** Instances that share the store: each takes its part of the limit while the store is gone. */
  readonly instances: number
  /** The fallback's clock. */
  readonly clock: Clock
  /** The first failure, and the first answer after failures. */
  readonly onDegraded: (error: StoreUnavailableError) => void
  readonly onRecovered: () => void
}

/**
 * How long a store has to answer without a failure to have recovered: one that fails for some keys and not for others
 * would otherwise be news with every decision.
 */
const STEADY_MS = 1_000

/**
 * The decision maker: asks the store once for all the limits of a request, and says what the answer means. Answers
 * with a value whenever the store does. `take` and `peek` never throw and never reject: a store that is gone, or that
 * answers rubbish, is a degraded decision.
 */
export class Decider {
  readonly #options: DeciderOptions
  readonly #fallback: LocalFallback
  #degraded = false
  #failedAtMs = 0

  constructor(options: DeciderOptions) {
    this.#options = options
    this.#fallback = new LocalFallback(options.instances, options.clock)
  }

  /** Takes the units of every ask, or refuses and takes none. */
  take(asks: readonly Ask[]): MaybePromise<Decision> {
    return this.#decide(asks, false)
  }

  /** The decision that `take` would make, counting nothing. */
  peek(asks: readonly Ask[]): MaybePromise<Decision> {
    return this.#decide(asks, true)
  }

  /** Gives back what the decision took, once; nothing when it took nothing. Rejects when the store does. */
  async refund(decision: Decision): Promise<void> {
    const receipt = DecisionRecord.takeReceipt(decision)
    if (receipt === undefined) return
    const refunds: Refund[] = []
    receipt.asks.forEach(({ policy, partition }, i) => {
      const { taken = 0, startMs = 0 } = receipt.answer.checks[i] ?? {}
      if (taken > 0) refunds.push({ policy, partition, units: taken, takenInMs: startMs })
    })
    await receipt.store.giveBack(refunds)
  }

  async reset(keys: readonly CounterKey[]): Promise<void> {
    if (keys.length > 0) await this.#options.store.reset(keys)
  }

  #decide(asks: readonly Ask[], peeked: boolean): MaybePromise<Decision> {
    if (asks.length === 0) return UNLIMITED
    for (const ask of asks) {
      if (isHopeless(ask) && !ask.shadow)
        return new DecisionRecord(asks.filter(isHopeless).map(explainSettled), false, undefined)
    }
    let answers: MaybePromise<readonly Answer[]>
    try {
      const counted = [countedOf(asks)]
      const { store, storeTimeoutMs } = this.#options
      answers = peeked ? store.peek(counted, storeTimeoutMs) : store.take(counted, storeTimeoutMs)
    } catch (error) {
      return this.#degrade(error, asks, peeked)
    }
    if (!isPromise(answers)) return this.#conclude(answers, asks, peeked)
    if (this.#options.store.keepsDeadline !== true) return this.#withinDeadline(answers, asks, peeked)
    // A store that others wrote may answer with a thenable, and that one's `then` may throw.
    return Promise.resolve(answers).then(
      (answered) => this.#conclude(answered, asks, peeked),
      (error: unknown) => this.#degrade(error, asks, peeked),
    )
  }

  #withinDeadline(
    answers: Promise<readonly Answer[]>,
    asks: readonly Ask[],
    peeked: boolean,
  ): Promise<Decision> {
    const { storeTimeoutMs } = this.#options
    return new Promise((resolve) => {
      let late = false
      const timer = setTimeout(() => {
        // A stall of our own event loop is not a failure of the store: replies that have arrived are read first.
        setImmediate(() => {
          if (late) return
          late = true
          const error = new StoreUnavailableError(`The store did not answer within ${storeTimeoutMs} ms.`)
          resolve(this.#degrade(error, asks, peeked))
        })
      }, storeTimeoutMs)
      const settle = (decide: () => Decision) => {
        clearTimeout(timer)
        if (late) return
        late = true
        resolve(decide())
      }
      // A store that others wrote may answer with a thenable, and that one's `then` may throw.
      Promise.resolve(answers).then(
        (answered) => settle(() => this.#conclude(answered, asks, peeked)),
        (error: unknown) => settle(() => this.#degrade(error, asks, peeked)),
      )
    })
  }

  #conclude(answers: readonly Answer[], asks: readonly Ask[], peeked: boolean): Decision {
    const decision = this.#explain(answers?.[0], asks, peeked)
    if (decision === undefined) {
      const error = new StoreUnavailableError("The store gave an answer that makes no sense.")
      return this.#degrade(error, asks, peeked)
    }
    const isSign = answers[0]?.isRemembered !== true
    if (this.#degraded && isSign && soundTime(this.#options.clock) >= this.#failedAtMs + STEADY_MS) {
      this.#degraded = false
      this.#options.onRecovered()
    }
    return decision
  }

  /** What the answer means; undefined when it makes no sense. */
  #explain(answer: Answer | undefined, asks: readonly Ask[], peeked: boolean): Decision | undefined {
    const counted = countedOf(asks)
    if (!isSound(answer, counted)) return undefined
    const { nowMs, granted } = answer
    const checks: PolicyCheck[] = []
    let next = 0
    for (const ask of asks) {
      checks.push(
        isCounted(ask) ? explain(ask, answer.checks[next++], nowMs, granted, peeked) : explainSettled(ask),
      )
    }
    const receipt = granted && !peeked ? { store: this.#options.store, asks: counted, answer } : undefined
    const decision = new DecisionRecord(checks, false, receipt)
    // A grant that took too little, or a refusal by no check: admitting either would not be counted.
    return decision.allowed === granted ? decision : undefined
  }

  #degrade(error: unknown, asks: readonly Ask[], peeked: boolean): Decision {
    this.#failedAtMs = soundTime(this.#options.clock)
    if (!this.#degraded) {
      this.#degraded = true
      this.#options.onDegraded(
        error instanceof StoreUnavailableError
          ? error
          : new StoreUnavailableError(
              `The store failed: ${error instanceof Error ? error.message : textOf(error)}`,
              { cause: error },
            ),
      )
    }
    return this.#fallback.decide(asks.filter(isCounted), peeked)
  }
}

/** The asks that a store is asked: nearly always all of them, so no list is made in vain. */
function countedOf(asks: readonly Ask[]): readonly Ask[] {
  for (const ask of asks) if (!isCounted(ask)) return asks.filter(isCounted)
  return asks
}

/** A shadow rule may be settled without counting while others still count. */
function isCounted(ask: Ask): boolean {
  return ask.refusal === undefined
}

function explainSettled(ask: Ask): PolicyCheck {
  return explainUncounted(ask, ask.refusal ?? "cost", Number.POSITIVE_INFINITY)
}

/** A counter that nobody looked at says nothing: it neither refuses nor is told to the client. */
function explain(
  ask: Ask,
  counted: Counted | undefined,
  nowMs: number,
  granted: boolean,
  peeked: boolean,
): PolicyCheck {
  return counted === undefined
    ? explainUncounted(ask, undefined, 0)
    : explainCounted(ask, counted, nowMs, granted, peeked)
}

function isSound(answer: Answer | undefined, asks: readonly Ask[]): answer is Answer {
  if (typeof answer !== "object" || answer === null) return false
  const { nowMs, granted, checks } = answer
  if (!isCount(nowMs) || typeof granted !== "boolean") return false
  if (!Array.isArray(checks) || checks.length !== asks.length) return false
  for (let i = 0; i < checks.length; i++) {
    const check: Partial<Counted> | undefined = checks[i]
    if (check === undefined && !granted) continue
    if (!isCount(check?.previous) || !isCount(check?.current) || !isCount(check?.taken)) return false
    // Ahead of the time only after the clock went back, and then by a window at most.
    const { windowMs } = (asks[i] as Ask).policy
    const elapsedMs = nowMs - (check?.startMs as number)
    if (!(elapsedMs < windowMs && elapsedMs >= -windowMs)) return false
  }
  return true
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>> | undefined)?.then === "function"
}
