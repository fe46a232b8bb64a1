import { compilePolicy } from "../../algorithms/kinds.ts"
import { anchorOf, DEFAULT_ANCHOR, periodsAround } from "../../ground/calendar.ts"
import type { Policy } from "../../ground/policy.ts"
import type { Calendar } from "../../rules/rule.ts"
import { Callback, wrong } from "../callbacks/callback.ts"
import type { CallbackResults } from "../callbacks/callback-results.ts"
import type { WindowPolicies } from "./limit.ts"
import type { RuleContext } from "./rule-context.ts"

/** Number of policies that are remembered for one anchor. A limit function may return any number. */
const MOST_POLICIES = 100
/** Number of clients whose anchors are remembered, in about 10 MB. */
const MOST_CLIENTS = 100_000
/** The result of an anchor function that has failed. No anchor has this number. */
const FAILED = 0

/** The boundaries of the periods around now for one anchor, and the policies that contain them. */
interface Current {
  readonly periods: readonly number[]
  readonly policies: Map<Policy, Policy>
}

/**
 * Compiles the calendar of a rule into a function that returns the policy of a request with the boundaries of the
 * periods around now. The boundaries are computed once in each period and for each anchor.
 */
export function compileCalendar(
  name: string,
  calendar: Calendar,
  unknown: Policy,
  context: Pick<RuleContext, "clock" | "callbackTimeoutMs" | "warner">,
): WindowPolicies {
  const { per, timeZone, anchor } = calendar
  const { clock } = context
  const callback = typeof anchor === "function" ? anchorCallback(name, calendar, anchor, context) : undefined
  const byAnchor = new Map<number, Current>()
  /** The latest anchor of each client, other than the default. The client that was added first is the first to go. */
  const latest = new Map<string, number>()

  function remember(partition: string, number: number): void {
    latest.delete(partition)
    if (number === DEFAULT_ANCHOR[per]) return
    const [oldest] = latest.keys()
    if (latest.size >= MOST_CLIENTS) latest.delete(oldest as string)
    latest.set(partition, number)
  }

  /** Returns the number of a request's anchor. Returns undefined while the promise of the anchor function is pending. */
  function anchorFor(results: CallbackResults, partition: string): number | undefined {
    if (callback === undefined) return anchor as number
    const number = results.resultOf(callback)
    const known = latest.get(partition) ?? DEFAULT_ANCHOR[per]
    // Another anchor could clear the counter and its granted units.
    if (number === FAILED) return known
    if (number !== undefined && number !== known) remember(partition, number)
    return number
  }

  function currentOf(number: number): Current {
    const nowMs = Math.floor(clock.now())
    const known = byAnchor.get(number)
    // The second and the third boundary are the start and the end of the current period.
    const [, startMs = 0, endMs = 0] = known?.periods ?? []
    if (known !== undefined && nowMs >= startMs && nowMs < endMs) return known
    const made = { periods: periodsAround(per, number, timeZone, nowMs), policies: new Map() }
    byAnchor.set(number, made)
    return made
  }

  return {
    policyOf(longest, results, partition) {
      const number = anchorFor(results, partition)
      // The promise of the anchor or of the limit is pending, or the limit is unknown.
      if (number === undefined) return undefined
      if (longest === undefined || longest === unknown) return longest
      const { periods, policies } = currentOf(number)
      let policy = policies.get(longest)
      if (policy === undefined) {
        if (policies.size >= MOST_POLICIES) policies.clear()
        policy = compilePolicy({ ...longest, periods, per, windowMs: longestOf(periods) })
        policies.set(longest, policy)
      }
      return policy
    },
    // The counter is the same for every anchor.
    counters: () => [{ windowMs: unknown.windowMs, counter: unknown.counter }],
  }
}

function longestOf(periods: readonly number[]): number {
  return Math.max(...periods.slice(1).map((endMs, at) => endMs - (periods[at] as number)))
}

/** Returns the callback whose result is the number of an anchor, or {@link FAILED}. */
function anchorCallback(
  name: string,
  { per }: Calendar,
  anchor: (request: unknown) => unknown,
  context: Pick<RuleContext, "clock" | "callbackTimeoutMs" | "warner">,
): Callback<number> {
  return new Callback(anchor, context, {
    read: (result) => (result === undefined ? DEFAULT_ANCHOR[per] : (anchorOf(per, result) ?? wrong(result))),
    failed(what, cause) {
      context.warner.once(
        "SLUICE_INVALID_LIMIT",
        `The anchor function of rule "${name}" ${what}. It must return the day on which the client's ${per} begins, such as ` +
          `${per === "year" ? '"04-01"' : "1"}, or undefined, or a promise of it. Until it does, the day that it last returned for the ` +
          "client in this process applies, or else the first day.",
        `anchor of ${name}`,
        cause,
      )
      return FAILED
    },
  })
}
