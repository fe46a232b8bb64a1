import { createLimiter, createRuleBook, type RuleBook, type RuleSource } from "@sluice/core"
import { longestStretches, type Stretches } from "./stretches.ts"

/** Limiters that have to compile what has changed. */
export const LIMITERS = 500
const LOGGER = { warn() {}, error() {} }

/** What a rule book of all services costs its process. */
export interface BookCosts {
  /** The first load, with nothing warm. */
  readonly loadMs: number
  /** What the rules take, in MB: of a second book, so that neither compiled code nor the source itself counts. */
  readonly heapMb: number
  readonly loads: readonly Stretches[]
  /** Loading again, when nothing has changed. */
  readonly unchanged: readonly Stretches[]
  /** Loading again, when everything has. */
  readonly changed: readonly Stretches[]
}

/** A store whose rules a benchmark may change. */
export interface Changeable {
  /** Its pollMs is longer than the benchmark. */
  readonly source: RuleSource
  /** Changes the rules of every service, which are called `service-0` and so on. */
  change(round: number): void | Promise<void>
}

/** Measures rule books on a source, so many rounds of each. `collectGarbage` must have collected when it returns. */
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
