import type Bottleneck from "bottleneck"

/** The time after which the permit of a killed process may be taken again. */
export const HOLD_MS = 2_000

/** The limit of one job at a time, with Sluice. */
export const sluiceOptions = {
  service: "one",
  rules: [{ field: "service", concurrent: 1, hold: HOLD_MS }],
  storeTimeoutMs: 20_000,
} as const

/** The arguments of a semaphore that admits one holder, after its client. */
export const SEMAPHORE: readonly [
  string,
  number,
  { readonly lockTimeout: number; readonly acquireTimeout: number },
] = ["one", 1, { lockTimeout: HOLD_MS, acquireTimeout: 20_000 }]

/**
 * The limit of one job at a time, with Bottleneck. The two intervals are shorter than the defaults of 5 and 10 seconds,
 * so that Bottleneck soon notices a dead process.
 */
export function bottleneckOptions(port: number): Bottleneck.ConstructorOptions {
  const intervals = { heartbeatInterval: 100, clientTimeout: 500 }
  return { id: "one", maxConcurrent: 1, datastore: "ioredis", clientOptions: { port }, ...intervals }
}
