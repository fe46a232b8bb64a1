import type { DecisionServiceParts } from "../decision-service.ts"

/** Where metrics are attached: every limiter, every request to a service without rules, and how they are read. */
export interface Instruments extends Pick<DecisionServiceParts, "onLimiter" | "onUnknownService"> {
  /** What GET /metrics answers; absent where there is nothing to read. */
  readonly read?: () => Promise<{ readonly contentType: string; readonly text: string }>
}

/** Measures nothing. */
export const NO_INSTRUMENTS: Instruments = { onLimiter() {}, onUnknownService() {} }
