import { LogError } from "../log-error.ts"
import { percent } from "../quantities.ts"
import type { NeverList } from "./never-list.ts"
import type { BoundResult, ReplayResult } from "./result.ts"

/** A bound, which is a number or a percentage. */
interface Bound {
  /** The bound as given, such as "0.5%". */
  readonly text: string
  /** The number, or millionths of a percent. */
  readonly most: bigint
  readonly isPercentage: boolean
}

/** The bounds of a replay. */
export interface ReplayBounds {
  readonly maxRefused?: Bound | undefined
  readonly maxRefusedClients?: Bound | undefined
  readonly maxNewlyRefused?: Bound | undefined
  /** Clients that must not be refused. */
  readonly never?: NeverList | undefined
}

const MILLIONTHS = 1_000_000n

/** Returns a bound such as "100" or "0.5%"; undefined if the text is neither. */
export function parseBound(text: string): Bound | undefined {
  const parts = /^(\d{1,15})(?:\.(\d{1,6}))?(%?)$/.exec(text)
  if (parts === null) return undefined
  const [, whole = "", decimals, sign] = parts
  if (sign === "")
    return decimals === undefined ? { text, most: BigInt(whole), isPercentage: false } : undefined
  const most = BigInt(whole) * MILLIONTHS + BigInt((decimals ?? "").padEnd(6, "0"))
  return most > 100n * MILLIONTHS ? undefined : { text, most, isPercentage: true }
}

/** Returns the bound that was given as an option. Throws LogError if the bound is not valid. */
export function boundOf(option: string, given: number | string | undefined): Bound | undefined {
  const bound = given === undefined ? undefined : parseBound(String(given))
  if (given === undefined || bound !== undefined) return bound
  throw new LogError(
    `${option} ${given} is not a bound. Expected a number, such as 100, or a percentage, such as 0.5%.`,
  )
}

/**
 * Returns each bound, and whether it holds. Rules in shadow mode refuse nothing, so they cannot exceed a bound.
 * `nameOf` returns the displayed name of a client.
 */
export function checkBounds(
  { maxRefused, maxRefusedClients, maxNewlyRefused, never }: ReplayBounds,
  { total, against }: Pick<ReplayResult, "total" | "against">,
  nameOf: (client: string) => string,
): readonly BoundResult[] {
  const results: BoundResult[] = []
  const check = (option: string, bound: Bound | undefined, value: number, all: number): void => {
    if (bound === undefined) return
    const holds = bound.isPercentage
      ? BigInt(value) * 100n * MILLIONTHS <= bound.most * BigInt(all)
      : BigInt(value) <= bound.most
    const share = bound.isPercentage ? `${value} of ${all}, ${percent(value, all)}` : `${value}`
    results.push({ bound: `${option} ${bound.text}`, value: share, holds })
  }
  check("--max-refused", maxRefused, total.refused, total.seen)
  check("--max-refused-clients", maxRefusedClients, total.clients.refused, total.clients.seen)
  if (against !== undefined)
    check("--max-newly-refused", maxNewlyRefused, against.newlyRefused.requests, total.seen)
  if (never !== undefined) {
    const [first, ...others] = never.found
    const more = others.length > 0 ? ` and ${others.length} more` : ""
    results.push({
      bound: `--never ${never.name}`,
      value: first === undefined ? "none of them is refused" : `refused: ${nameOf(first)}${more}`,
      holds: first === undefined,
    })
  }
  return results
}
