import type { OnStoreFailure } from "../policy.ts"
import type { Check } from "../stores/store.ts"

/** A check that a request asks for, with what its rule says should happen around it. */
export interface Ask extends Check {
  readonly rejectionMessage: string | undefined
  readonly onStoreFailure: OnStoreFailure
  /** Settled before anything is counted: the rule's own list names the client, or a field is missing. */
  readonly refusal: "denied" | "missing-field" | undefined
  /** The field that is missing. */
  readonly field: string | undefined
}

/** Whether the ask is refused whatever the counts are. */
export function isHopeless(ask: Ask): boolean {
  return ask.refusal !== undefined || ask.cost > ask.policy.limit
}
