import type { Store } from "@sluice/core"
import { clockOption, LONGEST_TIMER_MS, mustBe, type OptionCheck, show } from "@sluice/core/kit"

/** Options in which defaults have replaced missing values. */
export type Parsed<Options> = {
  readonly [Name in keyof Options]-?: Exclude<Options[Name], undefined>
}

/** Accepts a time: a whole number of milliseconds from 1 to `mostMs`. */
export function timeUpTo(mostMs: number): OptionCheck {
  return mustBe(
    "a valid time",
    `a whole number of milliseconds from 1 to ${mostMs}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= mostMs,
  )
}

/** Accepts any time that a timer can wait. */
export const timeMs: OptionCheck = timeUpTo(LONGEST_TIMER_MS)

/** The checks of the options that all stores in front share. */
export const COMMON_CHECKS: Readonly<Record<"rules" | "clock", OptionCheck>> = {
  rules: mustBe(
    "a function",
    "a function that returns true for the names of the selected rules",
    (value) => typeof value === "function",
  ),
  clock: clockOption,
}

/**
 * Accepts a store that processes share. `example` is a correct call, for messages. `problemOf` finds further
 * problems.
 */
export function sharedStore(
  example: string,
  problemOf: (store: Store) => ReturnType<OptionCheck> = () => undefined,
): OptionCheck {
  return (value) => {
    const store = value as Partial<Store> | null | undefined
    if (typeof store?.take !== "function") {
      return {
        message: `${show(value)} is not a store`,
        accepted: `a store that processes share: ${example}`,
      }
    }
    if (store.isShared === true) return problemOf(store as Store)
    return {
      message: store.isShared === undefined ? "does not say whether processes share it" : "is not shared",
      accepted: `a store that processes share, with isShared: true: ${example}`,
    }
  }
}
