import type { Behaviour } from "@sluice/contracts"
import { describe, it } from "vitest"

/**
 * Registers a test for every behavior of a contract. Skips behaviors from which the implementation deviates, and
 * shows the reason.
 */
export function runContract(name: string, behaviours: readonly Behaviour[]): void {
  describe(name, () => {
    for (const { name: behaviour, show, deviation } of behaviours) {
      if (deviation === undefined) it(behaviour, show)
      else it.skip(`${behaviour} (it does not: ${deviation})`, show)
    }
  })
}
