import { ClosedError, type Store } from "@sluice/core"
import { releases } from "@sluice/core/stores"
import { expect } from "expect"
import { check, EACH, MINUTE, SLIDING, type StoreSuite, takeOne, UNTAKEN } from "./asking.ts"

/** Adds the behaviors for a clock that steps back, and for a closed store. */
export function adversity({ group, behaves, behavesWithEach }: StoreSuite): void {
  group("a clock that steps back", () => {
    for (const [what, backMs] of [
      ["a millisecond", 1],
      ["a window", MINUTE],
      ["ten windows", 10 * MINUTE],
    ] as const) {
      behavesWithEach(`${what}: does not admit any unit twice`, async (store, policy, clock) => {
        await takeOne(store, check(policy, 10))
        clock.advance(-backMs)
        expect((await takeOne(store, check(policy, 1))).granted).toBe(false)
      })

      behavesWithEach(
        `${what}: admits a client that keeps asking within two windows, or three for permits`,
        async (store, policy, clock) => {
          await takeOne(store, check(policy, 10))
          clock.advance(-backMs)
          const granted: boolean[] = []
          const more = releases(policy) ? [MINUTE] : []
          for (const afterMs of [0, 1, MINUTE - 1, MINUTE / 2, MINUTE / 2, ...more]) {
            clock.advance(afterMs)
            granted.push((await takeOne(store, check(policy, 10))).granted)
          }
          expect(granted).toContain(true)
        },
      )
    }

    behaves("repeatedly around a boundary: does not open any window twice", async (store, clock) => {
      let granted = 0
      for (let i = 0; i < 20; i++) {
        for (const policy of EACH) if ((await takeOne(store, check(policy, 10))).granted) granted++
        clock.advance(i % 2 === 0 ? -1 : 1)
      }
      expect(granted).toBe(EACH.length)
    })
  })

  group("closed", () => {
    const calls: [name: string, (store: Store) => unknown][] = [
      ["take", (store) => store.take([check(SLIDING)])],
      ["take of no checks", (store) => store.take([])],
      ["read", (store) => store.read([check(SLIDING)])],
      ["refund", (store) => store.refund([{ policy: SLIDING, partition: "", units: 1, after: UNTAKEN }])],
      ["reset", (store) => store.reset([{ policy: SLIDING, partition: "" }])],
      ["subscribe", (store) => (store.subscribe === undefined ? closed() : store.subscribe(() => {}))],
    ]
    function closed(): never {
      throw new ClosedError("This store does not have subscribe().")
    }

    for (const [method, call] of calls) {
      behaves(`${method} rejects with ClosedError`, async (store) => {
        await store.close()
        await expect((async () => call(store))()).rejects.toBeInstanceOf(ClosedError)
      })
    }

    behaves("can be closed twice", async (store) => {
      await store.close()
      await store.close()
    })
  })
}
