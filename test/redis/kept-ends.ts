import { expect } from "vitest"
import type { CounterState } from "../../packages/core/src/algorithms/algorithm.ts"
import { algorithmOf, releases } from "../../packages/core/src/algorithms/kinds.ts"
import type { Clock } from "../../packages/core/src/ground/clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { MemoryStore } from "../../packages/core/src/stores/memory/memory-store.ts"
import type { CounterKey } from "../../packages/core/src/stores/store.ts"
import { type KeysOnAClock, moreMs } from "./keys-on-a-clock.ts"

/** The effect of a request, or of a refund, on a counter. */
export interface Looked extends CounterKey {
  /** Units that the request took. If it took any units, the key is written and its TTL follows this policy. */
  readonly taken: number
}

/** The state of a counter under one of its policies, and when that state expires. */
interface End {
  readonly policy: Policy
  readonly state: CounterState
  /** Epoch milliseconds; undefined when the state is empty. */
  readonly atMs: number | undefined
}

/**
 * The expiry that each key should have, computed by the memory store as a twin. If all policies of a counter agree,
 * the expiry is exact to the millisecond. If they differ, the expiry follows the last policy that wrote the key. It
 * may also follow a policy that read the key afterwards, if that expiry is later.
 */
export class KeptEnds {
  readonly #keys: KeysOnAClock
  readonly #clock: Clock
  readonly #twin: MemoryStore
  readonly #nameOf: (counter: CounterKey) => string
  readonly #policies: readonly Policy[]
  /** The instants at which each key may expire. If undefined is among these instants, the key may be absent. */
  #ends = new Map<string, ReadonlySet<number | undefined>>()
  /**
   * The state of each key under the policy that last read the key. After the clock has gone back, another read may
   * change this state.
   */
  readonly #last = new Map<string, End>()

  constructor(
    keys: KeysOnAClock,
    clock: Clock,
    twin: MemoryStore,
    nameOf: (counter: CounterKey) => string,
    policies: readonly Policy[],
  ) {
    this.#keys = keys
    this.#clock = clock
    this.#twin = twin
    this.#nameOf = nameOf
    this.#policies = policies
  }

  /** Prepares a step. At first, each key is expected to expire as after the previous step. */
  begin(counters: readonly CounterKey[]): void {
    this.#ends = new Map(
      counters.map((counter) => {
        const name = this.#nameOf(counter)
        return [name, new Set([this.#keys.at(name)?.expiresMs[1]])]
      }),
    )
  }

  /** Records the effects of a request or refund. Must be called after the twin has executed the request or refund. */
  looked(all: readonly Looked[]): void {
    for (const name of new Set(all.map(this.#nameOf))) {
      const looks = all.filter((one) => this.#nameOf(one) === name)
      const writer = looks.findLast(({ policy, taken }) => taken > 0 && policy.algorithm !== "penalty")
      const ends = looks.map((one) => this.#endOf(one))
      this.#last.set(name, ends.at(-1) as End)
      const may = ends.map(({ atMs }) => atMs)
      this.#ends.set(
        name,
        writer === undefined
          ? this.#unlessWritten(name, may, looks[0]?.policy.periods !== undefined)
          : new Set([may[looks.indexOf(writer)]]),
      )
    }
  }

  /**
   * Returns the possible expiries after a peek, a counted refusal or a refund, which take no units. The previous
   * expiry remains possible unless one of `ends` is later, because the script then extends the TTL. The script never
   * extends the TTL of a calendar period (`isPeriod`).
   */
  #unlessWritten(
    name: string,
    ends: readonly (number | undefined)[],
    isPeriod: boolean,
  ): ReadonlySet<number | undefined> {
    const next = new Set(ends)
    for (const before of this.#ends.get(name) ?? []) {
      const lastsMs = before === undefined ? 0 : before + moreMs(before - this.#clock.now())
      if (isPeriod || ends.every((atMs = 0) => atMs <= lastsMs)) next.add(before)
    }
    return next
  }

  /** Expects that a key expires at the right instant, and records that instant. Returns the expected state. */
  expectEnd(counter: CounterKey): End {
    const name = this.#nameOf(counter)
    const seen = this.#keys.at(name)
    const policies = this.policiesOf(counter)
    const end = this.#last.get(name) as End
    const may = [...(this.#ends.get(name) ?? [])]
    if (policies.every((policy) => endsAlike(policy, policies[0] as Policy))) {
      if (end.atMs !== undefined) {
        expect(seen?.expiresMs[0]).toBeLessThanOrEqual(end.atMs)
        expect(seen?.expiresMs[1]).toBeGreaterThanOrEqual(end.atMs)
        this.#keys.pin(name, end.atMs)
      } else if (seen !== undefined) {
        // Only a key that expires in this millisecond still exists, and the last call did not write it.
        expect(seen.isWritten).toBe(false)
        expect(seen.expiresMs).toEqual([this.#clock.now(), this.#clock.now()])
      }
      return end
    }
    if (seen === undefined) {
      expect([name, may]).toEqual([name, expect.arrayContaining([undefined])])
      return end
    }
    const [soonestMs, latestMs] = seen.expiresMs
    const atMs = may.find((one) => one !== undefined && one >= soonestMs && one <= latestMs)
    if (atMs === undefined) expect.fail(`${name} expires at ${seen.expiresMs}, and not at any of ${may}`)
    this.#keys.pin(name, atMs)
    return end
  }

  /** Returns all policies of the counter. */
  policiesOf({ policy }: CounterKey): readonly Policy[] {
    return this.#policies.filter(({ counter }) => counter === policy.counter)
  }

  #endOf(counter: CounterKey): End {
    const { policy } = counter
    const counted = this.#twin.read([{ ...counter, cost: 0, shadow: false }]).counters[0]
    if (counted === undefined) throw new Error("the twin has told nothing")
    const { state } = counted
    const isEmpty = state.current === 0 && state.previous === 0
    const emptyAtMs = isEmpty ? undefined : algorithmOf(policy).emptyAtMs(state, policy)
    const seen = this.#keys.at(this.#nameOf(counter))
    if (seen === undefined || !releases(policy)) return { policy, state, atMs: emptyAtMs }
    // A key with permits lasts for two windows, even after all permits have been released.
    const atMs = startOf(seen.value, policy, this.#clock.now()) + 2 * policy.windowMs
    expect(atMs).toBeGreaterThanOrEqual(emptyAtMs ?? 0)
    return { policy, state, atMs }
  }
}

/** Returns the start of the latest window in the value of a key with two windows. */
function startOf(value: string, { windowMs }: Policy, nowMs: number): number {
  const wide = /^w:(\d+):/.exec(value)
  if (wide !== null) return Number(wide[1])
  const alignedMs = nowMs - (nowMs % windowMs)
  const code = Math.floor(Number(value) / 2 ** 42)
  const back = [0, 1, 2, -1].find((windows) => ((alignedMs / windowMs - windows) % 2_047) + 1 === code)
  return alignedMs - (back ?? Number.NaN) * windowMs
}

/** True if the state of a counter ends at the same instant under both policies. */
function endsAlike(one: Policy, other: Policy): boolean {
  if (String(one.periods) !== String(other.periods)) return false
  if (algorithmOf(one).endsByRule !== true) return true
  return (
    one.limit === other.limit &&
    one.burst === other.burst &&
    one.extra === other.extra &&
    one.penalty?.withinMs === other.penalty?.withinMs &&
    String(one.penalty?.forMs) === String(other.penalty?.forMs)
  )
}
