import { setImmediate as nextTurn } from "node:timers/promises"
import { type ExpiringStore, storeContract, storeExpiryContract } from "@sluice/contracts"
import { type ManualClock, manualClock } from "../packages/core/src/ground/manual-clock.ts"
import type {
  ChangeCounters,
  CounterBackend,
} from "../packages/core/src/stores/transactional/counter-backend.ts"
import { transactionalStore } from "../packages/core/src/stores/transactional/transactional-store.ts"
import { runContract } from "./contracts/run-contract.ts"

/** A table of strings on a test clock, which runs one transaction at a time. */
class Table implements CounterBackend {
  readonly #rows = new Map<string, string>()
  readonly #clock: ManualClock

  constructor(clock: ManualClock) {
    this.#clock = clock
  }

  transact(keys: readonly string[], change: ChangeCounters): void | Promise<void> {
    this.write(change(this.read(keys), this.#clock.now()))
  }

  protected read(keys: readonly string[]): Parameters<ChangeCounters>[0] {
    return keys.map((key) => JSON.parse(this.#rows.get(key) ?? "null") ?? undefined)
  }

  protected write(changes: ReturnType<ChangeCounters>): void {
    for (const { key, counter } of changes) {
      if (counter === undefined) this.#rows.delete(key)
      else this.#rows.set(key, JSON.stringify(counter))
    }
  }

  protected now(): number {
    return this.#clock.now()
  }

  /** Deletes expired rows, as a scheduled job of a database would. */
  deleteExpired(): void {
    for (const [key, text] of this.#rows) {
      if (JSON.parse(text).expiresAtMs <= this.#clock.now()) this.#rows.delete(key)
    }
  }
}

/**
 * A table whose transactions are asynchronous. Each transaction conflicts with another one, fails once, and is then
 * retried.
 */
class Contended extends Table {
  override async transact(keys: readonly string[], change: ChangeCounters): Promise<void> {
    await nextTurn()
    change(
      keys.map(() => undefined),
      this.now(),
    )
    await nextTurn()
    this.write(change(this.read(keys), this.now()))
  }
}

runContract(
  "a transactional store",
  storeContract({ create: (clock) => transactionalStore(new Table(clock)) }),
)

runContract(
  "a transactional store whose transactions are retried",
  storeContract({ create: (clock) => transactionalStore(new Contended(clock)), effort: 0.2 }),
)

runContract("a transactional store", storeExpiryContract({ create: storeOnTable }))

function storeOnTable(): ExpiringStore {
  const clock = manualClock()
  const table = new Table(clock)
  return { store: transactionalStore(table), clock, forget: async () => table.deleteExpired() }
}
