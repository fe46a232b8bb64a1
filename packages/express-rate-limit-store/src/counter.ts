import { createLimiter, InvalidOptionError, type Limiter, type Logger, type Store } from "@sluice/core"
import type { Options } from "express-rate-limit"
import type { ParsedStoreOptions } from "./options.ts"

/** The options of its limiter that express-rate-limit passes to a store. */
export interface LimiterFacts {
  readonly windowMs: number
  /** The number of hits that every client has. Undefined if the number is not known, so that every hit is counted. */
  readonly limit: number | undefined
  /** Undefined before version 8.6: then warnings go to `process.emitWarning`. */
  readonly logger: Logger | undefined
}

const DAY_MS = 86_400_000

/**
 * Returns the number of hits that a limit admits. Undefined if the limit is a function, or if it admits nothing or
 * everything.
 */
export function knownLimit(limit: Options["limit"] | undefined): number | undefined {
  const isKnown = typeof limit === "number" && limit >= 1 && limit <= Number.MAX_SAFE_INTEGER
  return isKnown ? Math.floor(limit) : undefined
}

/**
 * Creates the limiter behind a store. Its requests are the keys of express-rate-limit.
 *
 * Without a known limit, it admits every hit, because express-rate-limit compares the count with the limit later. So
 * refused hits count too. In a sliding window, a client that keeps sending would never be admitted again. Therefore the
 * default is a fixed window from the client's first hit, whose end does not depend on the limit.
 * @throws {@link InvalidOptionError}
 */
export function createCounter(
  options: ParsedStoreOptions,
  store: Store,
  { windowMs, limit, logger }: LimiterFacts,
): Limiter<string> {
  return createLimiter<string>({
    service: "express-rate-limit",
    name: options.prefix,
    field: "key",
    fields: { key: (key) => key },
    onMissing: "shared",
    ...{ store, logger, window: `${windowMs} ms` },
    ...(limit === undefined ? everyHit(options) : { ...options.counting, limit }),
  })
}

/** Returns the members of a rule that counts every hit, or as many as the largest limit admits. */
function everyHit({ largestLimit, counting }: ParsedStoreOptions) {
  // A share of the limit that each instance grants in an outage cannot be computed without the limit.
  const { algorithm, instances: _unused, ...others } = counting
  if (algorithm === "token-bucket") {
    const message = '"token-bucket" refills by the limit, which is not a number here'
    throw new InvalidOptionError([{ path: "algorithm", message, accepted: "a window, or a positive limit" }])
  }
  return {
    ...(algorithm === undefined
      ? ({ algorithm: "fixed-window", align: "first-hit" } as const)
      : { algorithm }),
    ...others,
    limit: largestLimit ?? (() => Number.MAX_SAFE_INTEGER),
  }
}

/**
 * Checks the options that are passed on to the limiter, before its limit and window are known.
 * @throws {@link InvalidOptionError}
 */
export function checkCounting({ counting, store }: ParsedStoreOptions): void {
  // A disabled limiter claims no names.
  const limiter = createLimiter({ ...counting, store, limit: 1, window: DAY_MS, enabled: false })
  void limiter.close()
}
