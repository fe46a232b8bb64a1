import { measureBounds, measureShares } from "./algorithms.ts"
import { measureInProcess, measureThroughRedis } from "./counting.ts"
import { measureFrameworks } from "./http.ts"
import type { Measurement, Part } from "./measurement.ts"
import { measureBytes } from "./memory.ts"
import type { Run } from "./settings.ts"

/** The function that measures each part. */
export const MEASURE: Readonly<Record<Part, (run: Run) => Promise<Measurement[]> | Measurement[]>> = {
  "in-process": measureInProcess,
  redis: measureThroughRedis,
  http: measureFrameworks,
  memory: measureBytes,
  bound: measureBounds,
  accuracy: measureShares,
}
