import { judgeAll } from "../algorithms/accuracy.ts"
import { findWorst } from "../algorithms/bound.ts"
import { exactly, type Measurement } from "./measurement.ts"
import type { Run } from "./settings.ts"

/**
 * Measures the most units that each algorithm admits in any window by all search methods, and compares them with the
 * guarantee.
 */
export async function measureBounds({ settings: { steps } }: Run): Promise<Measurement[]> {
  const { found } = await findWorst({ steps, strictSteps: steps, windows: 6 })
  return found.map(({ kind, all, random, live }): Measurement => {
    const ofWindow = [...all, ...random, ...live].filter(({ bound }) => bound === kind.bounds[0])
    const shares = ofWindow.map(({ most, size }) => most / size.limit)
    const worst = ofWindow[shares.indexOf(Math.max(...shares))]
    if (worst === undefined) throw new Error(`Nothing was found of ${kind.name}`)
    return {
      part: "bound",
      workload: "a client that wants as much as it can get",
      contender: kind.name,
      isOurs: true,
      quantity: "most admitted in any window, times the limit",
      ...exactly(worst.most / worst.size.limit),
      promised: worst.allowed / worst.size.limit,
    }
  })
}

/** Measures each algorithm's admissions of random traffic as a share of an exact log's admissions. */
export function measureShares({ settings: { windows } }: Run): Measurement[] {
  return judgeAll(windows).map(({ name, traffic, share }): Measurement => {
    const quantity = "share of what an exact log admits"
    return { part: "accuracy", workload: traffic, contender: name, isOurs: true, quantity, ...exactly(share) }
  })
}
