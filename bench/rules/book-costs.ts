import { createLimiter } from "@sluice/core"
import { createRuleBook, type RuleBook, type RuleSource } from "@sluice/rules"
import { longestStretches, type Stretches } from "./stretches.ts"

/** Number of limiters, which compile the changed rules. */
export const LIMITERS = 500
const LOGGER = { warn() {}, error() {} }

/** The cost of a rule book that contains all services. */
export interface BookCosts {
  /** Duration of the first load, without a warm-up. */
  readonly loadMs: number
  /** Heap of the rules in MB. Measured with a later book, so that compiled code and the source are not included. */
  readonly heapMb: number
  readonly loads: readonly Stretches[]
  /** The cost of reloads when nothing has changed. */
  readonly unchanged: readonly Stretches[]
  /** The cost of reloads when all rules have changed. */
  readonly changed: readonly Stretches[]
}

/** A rule source whose rules the benchmark can change. */
export interface Changeable {
  /** The source. Its `pollMs` must be longer than the benchmark. */
  readonly source: RuleSource
  /** Changes the rules of every service. The services are named `service-0`, `service-1` and so on. */
  change(round: number): void | Promise<void>
}

/** Measures rule books that load from a source. `collectGarbage` must collect garbage synchronously. */
export async function measureBook(
  { source, change }: Changeable,
  rounds: number,
  collectGarbage: () => void,
): Promise<BookCosts> {
  const open = (): RuleBook => createRuleBook({ source, services: "all", logger: LOGGER })
  const heapMb = (): number => {
    collectGarbage()
    return process.memoryUsage().heapUsed / 1e6
  }
  const loads: Stretches[] = []
  const load = async (book: RuleBook): Promise<number> => {
    const startedAtMs = performance.now()
    let tookMs = 0
    loads.push(
      await longestStretches(async () => {
        await book.ready()
        tookMs = performance.now() - startedAtMs
      }),
    )
    return tookMs
  }
  const first = open()
  const loadMs = await load(first)
  first.close()
  for (let round = 2; round < rounds; round++) {
    const another = open()
    await load(another)
    another.close()
  }
  const before = heapMb()
  const book = open()
  await load(book)
  const taken = heapMb() - before

  const unchanged: Stretches[] = []
  for (let round = 0; round < rounds * 4; round++)
    unchanged.push(await longestStretches(() => book.refresh()))
  const limiters = Array.from({ length: LIMITERS }, (_, index) =>
    createLimiter({ rules: book, onRulesMissing: "allow", service: `service-${index}`, logger: LOGGER }),
  )
  const changed: Stretches[] = []
  for (let round = 0; round < rounds; round++) {
    await change(round)
    changed.push(await longestStretches(() => book.refresh()))
  }
  await Promise.all(limiters.map((limiter) => limiter.close()))
  book.close()
  return { loadMs, heapMb: taken, loads, unchanged, changed }
}
