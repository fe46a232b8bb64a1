import type { Cluster } from "node:cluster"
import { warnOncePerLogger } from "../ground/warnings.ts"
import type { RequestFacts } from "../request/request.ts"
import type { Limiter } from "./interface/limiter.ts"
import type { LimiterOptions } from "./options/options.ts"
import { type ParsedOptions, parseOptions } from "./options/parse-options.ts"
import { RequestLimiter } from "./request-limiter.ts"

/**
 * Creates a limiter for any kind of request, with one inline rule or with `rules`. Counters are in the memory of this
 * process unless a store is given. The limiter does not keep the process alive.
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 *
 * const limiter = createLimiter<{ user: number }>({
 *   limit: 10,
 *   window: "1 minute",
 *   field: "user_id",
 *   fields: { user_id: (job) => job.user },
 * })
 * const { allowed, remaining, retryAfterMs } = await limiter.decide({ user: 7 }) // true, 9, 0
 * ```
 * @throws {@link InvalidOptionError} with everything that is wrong with the options.
 */
export function createLimiter<Request = RequestFacts, Response = unknown>(
  options: LimiterOptions<Request, Response>,
): Limiter<Request> {
  const parsed = parseOptions(options)
  const limiter = RequestLimiter.create<Request>(parsed)
  warnOfDefaultService(parsed)
  warnOfLimitPerWorker(parsed)
  return limiter
}

function warnOfDefaultService({ enabled, store, service, logger }: ParsedOptions): void {
  if (!enabled || store.isShared !== true || service !== "default") return
  warnOncePerLogger(
    logger,
    "SLUICE_DEFAULT_SERVICE",
    'A limiter counts as service "default" in a shared store. Another app with a rule of the same name would use the ' +
      'same counters. Set service: "…" to the name of this app.',
  )
}

function warnOfLimitPerWorker({ enabled, store, logger }: ParsedOptions): void {
  if (!enabled || store.isShared !== false || !isClusterWorker()) return
  warnOncePerLogger(
    logger,
    "SLUICE_LIMIT_PER_WORKER",
    "This process is a worker of node:cluster and counts in its own memory, so each worker grants the whole limit. Share one store " +
      "between the workers, such as redisStore({ client }), or divide the limit by the number of workers.",
  )
}

/**
 * Whether this process is a worker of node:cluster. The module is not imported here, because few processes need it
 * and Node has already loaded it in a worker.
 */
function isClusterWorker(): boolean {
  return (
    process.send !== undefined && (process.getBuiltinModule("node:cluster") as unknown as Cluster).isWorker
  )
}
