import { setTimeout as sleep } from "node:timers/promises"
import { createLimiter, type Limiter } from "@sluice/core"
import { liveRules } from "@sluice/rules"
import { StoredServices } from "./stored-services.ts"

/** How an instance notices a change: by polling, or by a call to `refresh`. */
export type Way = "poll" | "refresh"

/**
 * Measures the time from a change in the source until an instance applies it. Returns the sorted milliseconds for
 * each instance and each change. The instances poll at different times.
 */
export async function changeToEnforcement(
  way: Way,
  instances: number,
  changes: number,
  pollMs: number,
): Promise<readonly number[]> {
  const source = new StoredServices(1, pollMs)
  const limiters = Array.from({ length: instances }, () =>
    createLimiter({
      rules: liveRules(source),
      onRulesMissing: "allow",
      service: "service-0",
      fields: { user_id: () => "ann" },
    }),
  )
  const latencies: number[] = []
  try {
    await Promise.all(limiters.map((limiter) => limiter.ready()))
    for (let change = 1; change <= changes; change++) {
      await sleep(Math.random() * pollMs)
      const limit = 1_000_000 + change
      source.write("service-0", change + 1, limit)
      const changedAtMs = performance.now()
      await Promise.all(
        limiters.map(async (limiter) => {
          const turned = nextTurn(limiter)
          if (way === "refresh") await limiter.refresh()
          await turned
          const { checks } = await limiter.decide({})
          if (checks[0]?.limit !== limit) throw new Error(`decided by a limit of ${checks[0]?.limit}`)
          latencies.push(performance.now() - changedAtMs)
        }),
      )
    }
  } finally {
    await Promise.all(limiters.map((limiter) => limiter.close()))
  }
  return latencies.sort((a, b) => a - b)
}

function nextTurn(limiter: Limiter): Promise<void> {
  return new Promise((resolve) => {
    limiter.on("rules", function turned() {
      limiter.off("rules", turned)
      resolve()
    })
  })
}
