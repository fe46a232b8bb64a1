import { expect } from "vitest"
import type { CounterState } from "../../packages/core/src/algorithms/algorithm.ts"
import { algorithmOf } from "../../packages/core/src/algorithms/kinds.ts"
import type { Clock } from "../../packages/core/src/ground/clock.ts"
import type { Policy } from "../../packages/core/src/ground/policy.ts"
import type { MemoryStore } from "../../packages/core/src/stores/memory/memory-store.ts"
import type { CounterKey } from "../../packages/core/src/stores/store.ts"
import { type KeysOnAClock, moreMs } from "./keys-on-a-clock.ts"

/** What a request, or a refund, did to a counter. */
export interface Looked extends CounterKey {
  /** Units that it took: a key is written then, and lives by that policy. */
  readonly taken: number
}

/** What a counter holds under one of its policies, and until when that means anything. */
interface End {
  readonly policy: Policy
  readonly state: CounterState
  /** Epoch milliseconds; undefined when it holds nothing. */
  readonly atMs: number | undefined
}

/**
 * When keys should expire, told by the TypeScript twin: to the millisecond where all policies of a counter agree. Where they
 * do not, by the one that wrote it last; or by another that looked at it since, when that one's end was later.
 */
export class KeptEnds {
  readonly #keys: KeysOnAClock
  readonly #clock: Clock
  readonly #twin: MemoryStore
  readonly #nameOf: (counter: CounterKey) => string
  readonly #policies: readonly Policy[]
  /** By key when it may expire; undefined is that it may not be there. */
  #ends = new Map<string, ReadonlySet<number | undefined>>()
  /** By key what it holds by the policy that looked at it last: another look may change it when the clock has gone back. */
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

  /** Before a step: keys end when they ended after the one before. */
  begin(counters: readonly CounterKey[]): void {
    this.#ends = new Map(
      counters.map((counter) => {
        const name = this.#nameOf(counter)
        return [name, new Set([this.#keys.at(name)?.expiresMs[1]])]
      }),
    )
  }

  /** After each request, or refund, of a step: the twin has done it. */
  looked(all: readonly Looked[]): void {
    for (const name of new Set(all.map(this.#nameOf))) {
      const looks = all.filter((one) => this.#nameOf(one) === name)
      const writer = looks.findLast(({ policy, taken }) => taken > 0 && policy.algorithm !== "penalty")
      const ends = looks.map((one) => this.#endOf(one))
      this.#last.set(name, ends.at(-1) as End)
      const may = ends.map(({ atMs }) => atMs)
      this.#ends.set(
        name,
        writer === undefined ? this.#unlessWritten(name, may) : new Set([may[looks.indexOf(writer)]]),
      )
    }
  }

  /** Nothing, or a refusal that counts, or what was given back; what ends too soon is made to last. */
  #unlessWritten(name: string, ends: readonly (number | undefined)[]): ReadonlySet<number | undefined> {
    const next = new Set(ends)
    for (const before of this.#ends.get(name) ?? []) {
      const lastsMs = before === undefined ? 0 : before + moreMs(before - this.#clock.now())
      if (ends.every((atMs = 0) => atMs <= lastsMs)) next.add(before)
    }
    return next
  }

  /** Expects a key to end when it should, and notes when that is. Yields what it should hold. */
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
        // What ends in this very millisecond is there still; nothing else is, and nothing new.
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

  /** All that the counter is counted under. */
  policiesOf({ policy }: CounterKey): readonly Policy[] {
    return this.#policies.filter(({ counter }) => counter === policy.counter)
  }

  #endOf(counter: CounterKey): End {
    const { policy } = counter
    const counted = this.#twin.peek([[{ ...counter, cost: 0, shadow: false }]])[0]?.checks[0]
    if (counted === undefined) throw new Error("the twin has told nothing")
    const { state } = counted
    const isEmpty = state.current === 0 && state.previous === 0
    return { policy, state, atMs: isEmpty ? undefined : algorithmOf(policy).emptyAtMs(state, policy) }
  }
}

/** Whether what a counter holds ends at the same instant under both policies. */
function endsAlike(one: Policy, other: Policy): boolean {
  if (algorithmOf(one).endsByRule !== true) return true
  return (
    one.limit === other.limit &&
    one.burst === other.burst &&
    one.extra === other.extra &&
    one.penalty?.withinMs === other.penalty?.withinMs &&
    one.penalty?.forMs === other.penalty?.forMs
  )
}
