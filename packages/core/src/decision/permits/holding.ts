import type { Policy } from "../../ground/policy.ts"
import type { CounterKey } from "../../stores/store.ts"

/** Permits that one decision holds in one counter. */
export interface Holding extends CounterKey {
  readonly permits: number
  /** When they were taken, in milliseconds of this process's clock. */
  readonly sinceMs: number
  /**
   * Start of the window in which the store counts the permits, as far as this process knows, in epoch milliseconds of
   * the store's clock. The store may count them in a later window, but never in an earlier one. Undefined if the
   * permits were taken without the store.
   */
  startMs: number | undefined
  /**
   * The decision. The reference is weak after the first attempt to renew, because most requests end before it. So code that
   * drops a decision without releasing it loses the permits within two windows.
   */
  owner: object | WeakRef<object>
  /** The renewal that is in flight. No permit has two. */
  renewal?: Promise<void> | undefined
  /** Renewals in the current window whose outcome is unknown, and the start of that window. */
  unknowns?: { readonly windowMs: number; readonly times: number }
  /** True if the permits are counted as lost. */
  isLossCounted?: boolean
}

/** Returns for how long a permit lasts at most unless it is renewed, in milliseconds: a rule's `hold`. */
export function holdMsOf({ windowMs }: Pick<Policy, "windowMs">): number {
  return 2 * windowMs
}
