import type { PolicyCheck } from "../../decision/decision.ts"
import { type Warner, warnOncePerLogger } from "../../ground/warnings.ts"
import type { ParsedOptions } from "../../limiter/options/parse-options.ts"
import type { RuleSet } from "../../limiter/rule-set/rule-set.ts"
import type { MountOutcome } from "./mount-outcome.ts"

/** Warns that a limiter with these rules has received a request twice. */
export function warnMountedTwice(warner: Warner, ruleNames: readonly string[]): void {
  warner.once(
    "SLUICE_MOUNTED_TWICE",
    `The limiter${withRules(ruleNames)} is mounted twice, so it received the same request twice. ` +
      "The request was counted once. Remove one of the mounts.",
  )
}

/**
 * Warns that a limiter is mounted after these routes or, without routes, that a response had begun before its request
 * was refused.
 */
export function warnMountedTooLate(warner: Warner, routes?: string): void {
  warner.once(
    "SLUICE_MOUNTED_TOO_LATE",
    routes === undefined
      ? "A request was refused after its response had begun, so its client did not get the refusal. The response was ended. " +
          "Mount the limiter before every handler that writes to the response."
      : `The limiter is mounted after ${routes}, so it only limits requests to which no route responds. ` +
          "Mount it before the routes. If it is meant for unmatched requests, mount it on a route that matches every path.",
    routes,
  )
}

/** Warns if an earlier mount has checked a rule with the same name, and clients see both rules. */
export function warnSameNames(warner: Warner, { own, earlier }: MountOutcome): void {
  for (let mount = earlier; mount !== undefined; mount = mount.earlier) {
    const same = mount.own.checks.find((check) => own.checks.some((other) => bothAreTold(check, other)))
    if (same === undefined) continue
    warner.once(
      "SLUICE_SAME_NAME",
      `Two limiters decided the same request, and both have a rule named ${JSON.stringify(same.policy)}. Clients cannot tell ` +
        'the two rules apart in headers and refusals. Give one of them another name: name: "…".',
    )
    return
  }
}

/** True if clients see both checks under the same name. Clients do not see shadow rules. */
function bothAreTold(check: PolicyCheck, other: PolicyCheck): boolean {
  return check.policy === other.policy && !check.shadow && !other.shadow
}

/** A row of limiters that request handlers created and that received one request each. */
interface Row {
  length: number
  /** Number of limiters at the end of the row that have the same rules. */
  same: number
  rules: string
}

/**
 * The lengths of a row that cause a warning. `TOO_MANY_ALIKE` is lower, because apps that create limiters on demand
 * seldom create several with the same rules.
 */
const TOO_LONG = 10
const TOO_MANY_ALIKE = 3

/** The current row for each logger that would receive the warning. */
const rows = new WeakMap<object, Row>()
const asked = new WeakSet<object>()

/**
 * Records a request for a limiter that a request handler has created. A row of such limiters causes one warning per
 * logger. A second request for one of these limiters ends the row. Such an app creates limiters on demand and keeps
 * them, for example one for each tenant.
 */
export function noteCreatedInHandler(limiter: CreatedLimiter): void {
  const { options, ruleSet } = limiter
  const app = options.logger ?? process
  if (asked.has(limiter)) {
    rows.delete(app)
    return
  }
  asked.add(limiter)
  const before = rows.get(app)
  const rules = JSON.stringify([options.service, ruleSet.rules])
  const row = {
    length: 1 + (before?.length ?? 0),
    same: before?.rules === rules ? before.same + 1 : 1,
    rules,
  }
  rows.set(app, row)
  if (row.length < TOO_LONG && row.same < TOO_MANY_ALIKE) return
  warnOncePerLogger(
    options.logger,
    "SLUICE_CREATED_IN_HANDLER",
    `${row.length} limiters in a row were created while a request was being handled, and got no other request. A limiter that ` +
      "each request creates counts only that request. Create the limiter once, when the app starts, and mount it: " +
      "app.use(rateLimit({ … })).",
  )
}

/** True if a limiter received a request in the turn of the event loop in which the limiter was created. */
export function wasCreatedInHandler(limiter: object): boolean {
  return asked.has(limiter)
}

interface CreatedLimiter {
  readonly options: Pick<ParsedOptions, "service" | "logger">
  readonly ruleSet: Pick<RuleSet, "rules">
}

/** Formats at most three of the rule names, because a source may contain thousands. */
function withRules(names: readonly string[]): string {
  if (names.length === 0) return ""
  const named = names.slice(0, 3).map((name) => `"${name}"`)
  return ` with rule${names.length > 1 ? "s" : ""} ${named.join(", ")}${names.length > 3 ? ", …" : ""}`
}
