import type { Behaviour } from "@sluice/contracts"
import { describe, it } from "vitest"

/** Shows every behaviour of a contract; of those that the implementation does not have it tells why. */
export function runContract(name: string, behaviours: readonly Behaviour[]): void {
  describe(name, () => {
    for (const { name: behaviour, show, deviation } of behaviours) {
      if (deviation === undefined) it(behaviour, show)
      else it.skip(`${behaviour} (it does not: ${deviation})`, show)
    }
  })
}
