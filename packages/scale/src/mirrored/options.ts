import type { Clock, Problem, Store } from "@sluice/core"
import { type OptionCheck, problemAt, requireOptions, show, steadyClock } from "@sluice/core/kit"
import { COMMON_CHECKS, type Parsed, sharedStore, timeUpTo } from "../in-front/options.ts"

/** The options of a mirrored store. */
export interface MirroredStoreOptions {
  /** The store of this data center, which decides. All processes of a data center must share this store. */
  readonly near: Store
  /** The stores of the other data centers, by name: `{ eu: redisStore({ client }) }`. Messages use the names. */
  readonly far: Readonly<Record<string, Store>>
  /**
   * Milliseconds between two charges of the other data centers: a whole number from 1 to 1,000. Default: 100. Units
   * that other data centers admit within this time plus the one-way latency count too late. Windows that are not much
   * longer than this time are not effectively shared.
   */
  readonly everyMs?: number | undefined
  /**
   * Selects the rules whose counters are mirrored, by name. Other rules apply in this data center alone. Default: all
   * rules.
   */
  readonly rules?: ((name: string) => boolean) | undefined
  /** A monotonic clock of this process, in milliseconds. Default: a clock that system time changes do not affect. */
  readonly clock?: Clock | undefined
}

/** The options with their defaults. */
export type ParsedMirroredOptions = Parsed<MirroredStoreOptions>

const EXAMPLE =
  "mirroredStore({ near: redisStore({ client }), far: { eu: redisStore({ client: euClient }) } })"

const checkShared = sharedStore(EXAMPLE)

const CHECKS: Readonly<Record<string, OptionCheck>> = {
  near: () => undefined,
  far: () => undefined,
  everyMs: timeUpTo(1_000),
  ...COMMON_CHECKS,
}

/**
 * Returns the options of a mirrored store with their defaults.
 * @throws {@link InvalidOptionError} with all options that are invalid, missing or misspelled
 */
export function parseOptions(options: MirroredStoreOptions): ParsedMirroredOptions {
  const given: Partial<MirroredStoreOptions> = options ?? {}
  requireOptions("mirroredStore", options, CHECKS, [
    ...problemAt("near", given.near, checkShared),
    ...problemsOfFar(given),
  ])
  const { near, far, everyMs = 100, rules = () => true } = options
  return { near, far, everyMs, rules, clock: options.clock ?? steadyClock }
}

function problemsOfFar({ near, far }: Partial<MirroredStoreOptions>): Problem[] {
  if (typeof far !== "object" || far === null || Object.keys(far).length === 0) {
    return [
      {
        path: "far",
        message: `${show(far)} is not an object of stores`,
        accepted: `an object with a store for each of the other data centers: ${EXAMPLE}`,
      },
    ]
  }
  const stores = Object.entries(far)
  return stores.flatMap(([name, store], i): Problem[] => {
    const path = `far.${name}`
    const problems = problemAt(path, store, checkShared)
    if (problems.length > 0) return problems
    const twin = store === near ? "near" : stores.slice(0, i).find(([, other]) => other === store)?.[0]
    if (twin === undefined) return []
    const accepted = "the store of another data center; with one store twice, its units would count twice"
    return [{ path, message: `is the same store as ${twin === "near" ? twin : `far.${twin}`}`, accepted }]
  })
}
