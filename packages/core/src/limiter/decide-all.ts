import type { Decision } from "../decision/decision.ts"
import { takeAll } from "../decision/group.ts"
import type { RuleCheck } from "../decision/rule-check.ts"
import { InvalidOptionError, type Problem } from "../ground/errors.ts"
import { requireNone } from "../ground/option-checks.ts"
import { show } from "../ground/show.ts"
import type { PreparedRequest } from "./checking/prepared-request.ts"
import type { AmountOptions, Limiter } from "./interface/limiter.ts"
import { notALimiter, RequestLimiter } from "./request-limiter.ts"

/** A request of a group, and the limiter that decides it. */
export interface GroupRequest<Request> extends AmountOptions {
  /** A limiter made by `createLimiter`. All limiters of a group count in the same store. */
  readonly limiter: Limiter<Request>
  /** The request, as for `limiter.decide`. */
  readonly request: Request
}

/** The decisions of a group: either all requests are admitted, or all are refused. */
export interface GroupDecision {
  /** Whether all requests are admitted. If not, no request has taken units. */
  readonly allowed: boolean
  /**
   * The decision of each request, in the order of the requests. If another request caused the refusal, the decision
   * has `refusal: "group"`, and its `retryAfterMs` is the wait of the whole group.
   */
  readonly decisions: readonly Decision[]
}

/**
 * Decides several requests together, all or nothing, in one call of their store. Use it for a request that needs
 * several services, each with its own limiter. Requests are not held, so a rule with a queue refuses immediately. To
 * refund the units, call `refund` of each limiter with its decision.
 *
 * In a Redis Cluster, units in different slots are taken one slot after the other, and are refunded if a later slot
 * refuses. If the store is unavailable, each limiter applies its `onStoreFailure`, and the result is still all or
 * nothing.
 * @example
 * ```ts
 * import { createLimiter, decideAll, memoryStore } from "@sluice/core"
 *
 * const store = memoryStore()
 * const search = createLimiter({ service: "search", store, limit: 100, window: "1 minute" })
 * const maps = createLimiter({ service: "maps", store, limit: 10, window: "1 minute" })
 * const request = { remoteAddress: "192.0.2.7" }
 * const { allowed } = await decideAll([
 *   { limiter: search, request },
 *   { limiter: maps, request, cost: 2 },
 * ]) // true: 99 are left in search, and 8 in maps
 * ```
 * @throws {@link InvalidOptionError} if a limiter is given twice, is not made by `createLimiter`, or has another store
 */
export async function decideAll<Requests extends readonly unknown[]>(
  requests: { readonly [Index in keyof Requests]: GroupRequest<Requests[Index]> },
): Promise<GroupDecision> {
  const group = requests as readonly GroupRequest<unknown>[]
  requireGroup(group)
  const asked = await Promise.all(
    group.map(async ({ limiter, request, cost, units }) => {
      const asking = limiter as RequestLimiter<unknown>
      return { limiter: asking, prepared: await asking.prepare(request, { cost, units }) }
    }),
  )
  const decisions = await takeGroup(asked)
  return { allowed: decisions.every(({ allowed }) => allowed), decisions }
}

/** A request of a group with its limiter. `prepared` is undefined if the limiter does not count the request. */
export interface PreparedMember<Request> {
  readonly limiter: RequestLimiter<Request>
  readonly prepared: PreparedRequest<Request> | undefined
}

/** The rule checks of a request that its limiter does not count. */
const NOT_COUNTED: readonly RuleCheck[] = []

/**
 * Decides prepared requests together, and emits events to the listeners of each limiter. All limiters must have the
 * same store.
 */
export async function takeGroup<Request>(
  members: readonly PreparedMember<Request>[],
): Promise<readonly Decision[]> {
  const decisions = await takeAll(
    members.map(({ limiter, prepared }) => ({
      decider: limiter.decider,
      ruleChecks: prepared?.ruleChecks ?? NOT_COUNTED,
    })),
  )
  for (const [i, { limiter, prepared }] of members.entries()) {
    if (prepared === undefined) continue
    const { request, ruleChecks, startedMs } = prepared
    limiter.admission.announce(decisions[i] as Decision, request, "decide", startedMs, ruleChecks)
  }
  return decisions
}

/** Throws {@link InvalidOptionError} for a group that cannot be decided in one call of one store. */
export function requireGroup(group: unknown): void {
  if (!Array.isArray(group)) {
    const message = `${show(group)} is not a list of requests`
    throw new InvalidOptionError([
      { path: "requests", message, accepted: "a list of objects with limiter and request" },
    ])
  }
  const problems: Problem[] = []
  for (const [i, each] of Array.from(group as readonly Partial<GroupRequest<unknown>>[]).entries()) {
    const path = `requests[${i}].limiter`
    const limiter = each?.limiter
    if (!(limiter instanceof RequestLimiter)) {
      problems.push({ path, ...notALimiter(limiter) })
      continue
    }
    // Compare deciders, because a route's limiter uses the counters of the limiter that it belongs to.
    const isSame = (other: Partial<GroupRequest<unknown>> | null): boolean =>
      other?.limiter instanceof RequestLimiter && other.limiter.decider === limiter.decider
    const earlier = group.findIndex(isSame)
    if (earlier < i) {
      const message = `is the limiter of requests[${earlier}] too, so both would count in the same counters`
      problems.push({ path, message, accepted: "one request for each limiter, with their sum as its cost" })
    }
    const first: unknown = group[0]?.limiter
    if (first instanceof RequestLimiter && first.options.store !== limiter.options.store) {
      const accepted = "limiters that were created with the same store"
      problems.push({ path, message: "has another store than requests[0].limiter", accepted })
    }
  }
  requireNone(problems)
}
