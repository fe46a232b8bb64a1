import type { AlgorithmName } from "../policy.ts"
import type { Algorithm } from "./algorithm.ts"
import { fixedWindow } from "./fixed-window.ts"
import { slidingWindow } from "./sliding-window.ts"

/** The algorithm behind each name that a policy may carry. */
export const ALGORITHMS: Readonly<Record<AlgorithmName, Algorithm>> = {
  "sliding-window": slidingWindow,
  "fixed-window": fixedWindow,
}
