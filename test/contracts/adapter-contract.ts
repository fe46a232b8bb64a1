import { manualClock } from "@sluice/core/testing"
import { describe, expect, it } from "vitest"
import { answering } from "./adapter/answering.ts"
import { awaiting } from "./adapter/awaiting.ts"
import { counting } from "./adapter/counting.ts"
import { fields } from "./adapter/fields.ts"
import { hardship } from "./adapter/hardship.ts"
import { holding } from "./adapter/holding.ts"
import { matching } from "./adapter/matching.ts"
import { mounting } from "./adapter/mounting.ts"
import type { AdapterUnderTest, AppPlan, RunningApp } from "./adapter/plan.ts"
import { refunding } from "./adapter/refunding.ts"
import { type Behaves, type Client, clientOf } from "./adapter/stage.ts"
import { starting } from "./adapter/starting.ts"
import { telling } from "./adapter/telling.ts"

/**
 * Registers the tests of the behavior that every adapter must have, over real sockets. `adapter` starts apps of one
 * framework.
 */
export function adapterContract(name: string, adapter: AdapterUnderTest): void {
  const { deviations = [] } = adapter
  const names = new Set<string>()

  const behaves: Behaves = (behaviour, show) => {
    if (names.has(behaviour)) throw new Error(`Two behaviours are called "${behaviour}".`)
    names.add(behaviour)
    const deviation = deviations.find((each) => each.behaviour === behaviour)
    if (deviation !== undefined) {
      it.skip(`${behaviour} (it does not: ${deviation.reason})`, () => {})
      return
    }
    it(behaviour, async () => {
      const clock = manualClock()
      const warnings: string[] = []
      const log = ({ code }: { readonly code: string }) => {
        warnings.push(code)
      }
      const apps: RunningApp[] = []
      const start = async (plan: AppPlan): Promise<Client> => {
        const app = await adapter.start(plan)
        apps.push(app)
        return clientOf(app.url)
      }
      const base = { clock, logger: { warn: log, error: log } }
      try {
        await show({
          ...{ adapter, clock, base, warnings, start },
          limited: (options, plan) => start({ mounts: [{ ...base, ...options }], ...plan }),
        })
      } finally {
        await Promise.all(apps.map((app) => app.close()))
      }
    })
  }

  describe(name, () => {
    telling(behaves)
    counting(behaves)
    matching(behaves)
    fields(behaves)
    mounting(behaves)
    answering(behaves)
    refunding(behaves)
    hardship(behaves)
    starting(behaves)
    holding(behaves)
    awaiting(behaves)

    it("has a behavior for each deviation", () => {
      expect(deviations.filter(({ behaviour }) => !names.has(behaviour))).toEqual([])
    })
  })
}
