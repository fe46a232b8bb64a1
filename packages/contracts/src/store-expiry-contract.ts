import type { Store } from "@sluice/core"
import type { CounterKey, Policy } from "@sluice/core/stores"
import type { ManualClock } from "@sluice/core/testing"
import { expect } from "expect"
import { type Behaviour, Contract, type Deviation } from "./behaviour.ts"
import {
  check,
  countOf,
  MINUTE,
  PERMITS,
  peekOne,
  SLIDING,
  stateOf,
  takeOne,
  UNTAKEN,
} from "./store/asking.ts"

/** Sixty units per minute. The bucket is full again a minute after it was emptied. */
const FAST: Policy = { ...SLIDING, name: "token", algorithm: "token-bucket", limit: 60, burst: 60 }
const BUCKETS: readonly Policy[] = [
  { ...FAST, counter: "forget-t" },
  { ...FAST, counter: "forget-p", name: "periodic", refill: "periodic" },
  { ...FAST, counter: "forget-l", name: "leaky", algorithm: "leaky-bucket" },
]
const PENALTY: Policy = {
  ...SLIDING,
  name: "penalty",
  counter: "forget-b",
  algorithm: "penalty",
  limit: 2,
  windowMs: MINUTE,
  penalty: { refusals: 2, withinMs: MINUTE, forMs: [MINUTE] },
}
const LONGER: Policy = { ...PENALTY, penalty: { refusals: 2, withinMs: 5 * MINUTE, forMs: [5 * MINUTE] } }
/** Blocks for one minute, and the next time for two minutes. A client moves one step down after five minutes. */
const GROWING: Policy = {
  ...PENALTY,
  counter: "forget-g",
  windowMs: 5 * MINUTE,
  penalty: { refusals: 2, withinMs: 5 * MINUTE, forMs: [MINUTE, 2 * MINUTE] },
}
const FULL: Policy = { ...SLIDING, counter: "forget-f", limit: 1, windowMs: 60 * MINUTE }

/** All counters that this contract uses. */
export const FORGETTABLE: readonly CounterKey[] = [...BUCKETS, PENALTY, GROWING, FULL, PERMITS].map(
  (policy) => ({
    policy,
    partition: "alice",
  }),
)

/** An empty store, and operations on it for tests. */
export interface ExpiringStore {
  /** The store. */
  readonly store: Store
  /** The clock of the store. */
  readonly clock: ManualClock
  /** Makes the store delete all entries that may expire by now. */
  forget(): Promise<void>
}

/** A store to be tested against the contract. */
export interface ExpiryUnderTest {
  /** Creates an empty store. */
  create(): ExpiringStore | Promise<ExpiringStore>
  /** Known deviations from the contract. Default: none. */
  readonly deviations?: readonly Deviation[]
}

/** Ways to read a counter without writing it. */
const LOOKS: readonly { readonly look: string; ask(store: Store, policy: Policy): Promise<unknown> }[] = [
  { look: "is refused", ask: (store, policy) => takeOne(store, check(policy, 2)) },
  {
    look: "is refused in shadow mode",
    ask: (store, policy) => takeOne(store, check(policy, 2, { shadow: true })),
  },
  { look: "asks for 0 units", ask: (store, policy) => takeOne(store, check(policy, 0)) },
  {
    look: "is refused in a request of two checks",
    ask: (store, policy) => takeOne(store, check(policy, 2), check(FULL, 1)),
  },
  {
    look: "asks for 0 units in a request of two checks",
    ask: (store, policy) => takeOne(store, check(policy, 0), check(FULL, 1)),
  },
  { look: "is only peeked at", ask: (store, policy) => peekOne(store, check(policy, 0)) },
  {
    look: "gets a refund without a matching take",
    ask: async (store, policy) => store.refund([{ policy, partition: "alice", units: 1, after: UNTAKEN }]),
  },
]

/**
 * Returns the behaviors of a store whose entries expire. After a rule has changed, an entry may have to live longer
 * than planned when it was written. Examples are a bucket that now refills more slowly and a block that now lasts
 * longer. The store must still delete every entry eventually.
 * @throws Error if a deviation names an unknown behavior
 */
export function storeExpiryContract({ create, deviations }: ExpiryUnderTest): readonly Behaviour[] {
  const contract = new Contract(deviations)
  const keeps = (behaviour: string, show: (opened: ExpiringStore) => Promise<void>) => {
    contract.add(behaviour, async () => {
      const opened = await create()
      try {
        await show(opened)
      } finally {
        await opened.store.close()
      }
    })
  }

  contract.group("forgets nothing that still counts", () => {
    for (const { look, ask } of LOOKS) {
      for (const policy of BUCKETS) {
        keeps(
          `a bucket that now refills more slowly, for a client that ${look} (${policy.name})`,
          async ({ store, clock, forget }) => {
            await takeOne(store, check(policy, 60))
            await ask(store, { ...policy, limit: 1 })
            clock.advance(3 * MINUTE)
            await forget()
            expect(await countOf(store, { ...policy, limit: 1 })).toBe(57)
          },
        )
      }

      keeps(`a block that now lasts longer, for a client that ${look}`, async (opened) => {
        const { store, clock, forget } = opened
        await takeOne(store, check(FULL, 1))
        for (let i = 0; i < 2; i++) await takeOne(store, check(FULL, 1), check(PENALTY, 1))
        clock.advance(30_000)
        await ask(store, LONGER)
        clock.advance(2 * MINUTE)
        await forget()
        expect((await takeOne(store, check(LONGER, 1))).granted).toBe(false)
        clock.advance(150_000)
        await forget()
        expect((await takeOne(store, check(LONGER, 1))).granted).toBe(true)
      })
    }

    for (const { look, ask } of LOOKS) {
      keeps(`the step of a client that ${look}, and no longer`, async ({ store, clock, forget }) => {
        await takeOne(store, check(FULL, 1))
        for (let i = 0; i < 2; i++) await takeOne(store, check(FULL, 1), check(GROWING, 1))
        clock.advance(3 * MINUTE)
        await forget()
        await ask(store, GROWING)
        clock.advance(3 * MINUTE - 1)
        await forget()
        expect(await countOf(store, GROWING)).toBeGreaterThan(0)
        clock.advance(MINUTE)
        await forget()
        const slower = { refusals: 2, withinMs: 50 * MINUTE, forMs: [MINUTE, 2 * MINUTE] }
        expect(await countOf(store, { ...GROWING, penalty: slower })).toBe(0)
      })
    }

    keeps("refusals that are now remembered for longer", async ({ store, clock, forget }) => {
      await takeOne(store, check(FULL, 1))
      await takeOne(store, check(FULL, 1), check(PENALTY, 1))
      await takeOne(store, check(LONGER, 1))
      clock.advance(2 * MINUTE)
      await forget()
      await takeOne(store, check(FULL, 1), check(LONGER, 1))
      expect(stateOf(await peekOne(store, check(LONGER, 1)))).toMatchObject({ current: 2, previous: 1 })
    })

    keeps("permits until two windows after their latest renewal, and no longer", async (opened) => {
      const { store, clock, forget } = opened
      const permits = { policy: PERMITS, partition: "alice", units: -3 }
      const after = stateOf(await takeOne(store, check(PERMITS, 3)))
      for (let part = 0; part < 3; part++) {
        clock.advance(MINUTE)
        await store.refund([{ ...permits, after: { ...after, startMs: after.startMs + part * MINUTE } }])
        await forget()
      }
      clock.advance(2 * MINUTE - 1_000)
      await forget()
      expect(await countOf(store, PERMITS)).toBe(3)
      clock.advance(1_000)
      await forget()
      expect(await countOf(store, PERMITS)).toBe(0)
    })

    keeps("permits that were taken long after all earlier permits were released", async (opened) => {
      const { store, clock, forget } = opened
      const after = stateOf(await takeOne(store, check(PERMITS, 3)))
      await store.refund([{ policy: PERMITS, partition: "alice", units: 3, after }])
      clock.advance(MINUTE + MINUTE / 2)
      await forget()
      await takeOne(store, check(PERMITS, 2))
      clock.advance(MINUTE + MINUTE / 4)
      await forget()
      expect(await countOf(store, PERMITS)).toBe(2)
    })

    keeps(
      "a bucket that now refills faster is kept until its original expiry, and no longer",
      async ({ store, clock, forget }) => {
        const [policy] = BUCKETS as [Policy]
        await takeOne(store, check(policy, 60))
        await peekOne(store, check({ ...policy, limit: 120 }, 1))
        clock.advance(59_000)
        await forget()
        expect(await countOf(store, policy)).toBe(1)
        clock.advance(2 * MINUTE)
        await forget()
        expect(await countOf(store, { ...policy, limit: 1 })).toBe(0)
      },
    )
  })
  return contract.done()
}
