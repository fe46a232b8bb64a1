import {
  type Check,
  type Counted,
  type CounterKey,
  type Policy,
  type Refund,
  releases,
  type StoreReading,
  type StoreResult,
} from "@sluice/core/stores"

/** Units taken in each window, keyed by the start of the window. */
type Windows = Map<number, number>

/**
 * The naive reference for comparisons with a store. The naive reference keeps every window forever, follows the plain
 * definitions and calculates with integers of any size. The reference does not share code with the stores, and its
 * clock does not step back.
 */
export class StoreModel {
  readonly #counters = new Map<string, Windows>()

  read(keys: readonly CounterKey[], nowMs: number): StoreReading {
    return { nowMs, counters: keys.map((key) => ({ state: this.#counts(key, nowMs, 0).state })) }
  }

  refund(refunds: readonly Refund[], nowMs: number): void {
    for (const { policy, partition, units, after } of refunds) {
      const windows = this.#windows({ policy, partition })
      const { startMs, current } = this.#counts({ policy, partition }, nowMs, 0).state
      if (policy.align === "first-hit" && units < 0) {
        // A take of zero units does not start a window. A later charge for this take starts a window at the time of
        // the take.
        const startedMs = current === 0 ? after.startMs : startMs
        if (nowMs - after.startMs < policy.windowMs) windows.set(startedMs, current - units)
        continue
      }
      const counted = policy.algorithm === "fixed-window" ? [startMs] : [startMs - policy.windowMs, startMs]
      if (releases(policy) && units < 0) {
        // The units of a renewal count in the current window only, whether or not they still counted before.
        const moved = counted.includes(after.startMs) ? Math.min(windows.get(after.startMs) ?? 0, -units) : 0
        windows.set(after.startMs, (windows.get(after.startMs) ?? 0) - moved)
        windows.set(startMs, (windows.get(startMs) ?? 0) - units)
        continue
      }
      if (counted.includes(after.startMs))
        windows.set(after.startMs, Math.max(0, (windows.get(after.startMs) ?? 0) - units))
    }
  }

  reset(keys: readonly CounterKey[]): void {
    for (const key of keys) this.#counters.delete(nameOf(key))
  }

  take(checks: readonly Check[], nowMs: number): StoreResult {
    const trial = this.#copy()
    const answers: Counted[] = []
    for (const check of checks) {
      const { previous, current, startMs } = trial.#counts(check, nowMs, 0).state
      const fits = check.cost === 0 || isAdmitted(check, previous, current, nowMs - startMs)
      if (!fits && !check.shadow) {
        this.#countRejected(checks, nowMs)
        return { nowMs, granted: false, checks: checks.map((each) => this.#counts(each, nowMs, 0)) }
      }
      const taken = fits ? check.cost : 0
      if (taken > 0) trial.#windows(check).set(startMs, current + taken)
      answers.push(trial.#counts(check, nowMs, taken))
    }
    for (const [name, windows] of trial.#counters) this.#counters.set(name, windows)
    return { nowMs, granted: true, checks: answers }
  }

  /** Counts the refused request under each check that would refuse it even alone, and that could admit it later. */
  #countRejected(checks: readonly Check[], nowMs: number): void {
    const counted = checks.filter((check) => {
      const { previous, current, startMs } = this.#counts(check, nowMs, 0).state
      const { policy, cost, shadow } = check
      if (policy.countRejected !== true || shadow || cost === 0 || cost > policy.limit) return false
      return !isAdmitted(check, previous, current, nowMs - startMs)
    })
    for (const check of counted) {
      const { current, startMs } = this.#counts(check, nowMs, 0).state
      const most = Math.max(current, check.policy.limit)
      this.#windows(check).set(startMs, Math.min(current + check.cost, most))
    }
  }

  #counts(key: CounterKey, nowMs: number, taken: number): Counted {
    const { algorithm, align, windowMs } = key.policy
    const windows = this.#windows(key)
    if (algorithm === "fixed-window" && align === "first-hit") {
      for (const [startMs, current] of windows) {
        if (current > 0 && startMs + windowMs > nowMs)
          return { state: { startMs, current, previous: 0 }, taken }
      }
      return { state: { startMs: nowMs, current: 0, previous: 0 }, taken }
    }
    const startMs = Math.floor(nowMs / windowMs) * windowMs
    const previous = algorithm === "fixed-window" ? 0 : (windows.get(startMs - windowMs) ?? 0)
    return { state: { startMs, current: windows.get(startMs) ?? 0, previous }, taken }
  }

  #windows(key: CounterKey): Windows {
    const name = nameOf(key)
    const windows = this.#counters.get(name) ?? new Map<number, number>()
    this.#counters.set(name, windows)
    return windows
  }

  #copy(): StoreModel {
    const copy = new StoreModel()
    for (const [name, windows] of this.#counters) copy.#counters.set(name, new Map(windows))
    return copy
  }
}

function isAdmitted({ policy, cost }: Check, previous: number, current: number, elapsedMs: number): boolean {
  const window = BigInt(policy.windowMs)
  const covered = releases(policy) ? window : window - BigInt(elapsedMs)
  const weighted = (BigInt(previous) * covered) / window
  return weighted + BigInt(current) + BigInt(cost) <= BigInt(policy.limit + (policy.extra ?? 0))
}

function nameOf({ policy, partition }: { policy: Policy; partition: string }): string {
  return JSON.stringify([policy.counter, partition])
}
