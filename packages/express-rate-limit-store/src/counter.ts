import { createLimiter, InvalidOptionError, type Limiter, type Logger, type Store } from "@sluice/core"
import type { Options } from "express-rate-limit"
import type { ParsedStoreOptions } from "./options.ts"

/** The limiter options that express-rate-limit passes to a store. */
export interface LimiterFacts {
  readonly windowMs: number
  /**
   * The number of hits that every client may make. Undefined if the number is unknown, so that every hit is counted.
   */
  readonly limit: number | undefined
  /** Undefined before version 8.6. In that case, warnings are passed to `process.emitWarning`. */
  readonly logger: Logger | undefined
}

const DAY_MS = 86_400_000

/**
 * Returns the number of hits that a limit admits. Returns undefined if the limit is a function, or if it admits
 * nothing or everything.
 */
export function knownLimit(limit: Options["limit"] | undefined): number | undefined {
  const isKnown = typeof limit === "number" && limit >= 1 && limit <= Number.MAX_SAFE_INTEGER
  return isKnown ? Math.floor(limit) : undefined
}

/**
 * Creates the limiter behind a store. The limiter's requests are the keys of express-rate-limit.
 *
 * Without a known limit, the limiter admits every hit, because express-rate-limit compares the count with the limit
 * later. Refused hits therefore count, too. In a sliding window, a client that keeps sending would never be admitted
 * again. Therefore, the default is a fixed window from the client's first hit, whose end does not depend on the
 * limit.
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

/** Returns the members of a rule that counts every hit, or only hits up to the largest limit. */
function everyHit({ largestLimit, counting }: ParsedStoreOptions) {
  // Ignore `instances`, because without the limit, the share that each instance grants in an outage cannot be
  // computed.
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
 * Checks the options that are passed to the limiter, before the limit and the window are known.
 * @throws {@link InvalidOptionError}
 */
export function checkCounting({ counting, store }: ParsedStoreOptions): void {
  // Create a disabled limiter, because it does not claim the names of its rules.
  const limiter = createLimiter({ ...counting, store, limit: 1, window: DAY_MS, enabled: false })
  void limiter.close()
}
