import type { PolicyCheck } from "../../decision/decision.ts"
import { hash } from "../../ground/hash.ts"
import { type Warner, warnOncePerLogger } from "../../ground/warnings.ts"
import type { ParsedOptions } from "../../limiter/options/parse-options.ts"
import type { RuleSet } from "../../limiter/rule-set/rule-set.ts"
import type { MountOutcome } from "./mount-outcome.ts"

/** Warns that a limiter with these rules has met a request twice. */
export function warnMountedTwice(warner: Warner, ruleNames: readonly string[]): void {
  warner.once(
    "SLUICE_MOUNTED_TWICE",
    `The limiter${withRules(ruleNames)} is mounted twice, so it met the same request twice. ` +
      "The request was counted once. Remove one of the mounts.",
  )
}

/** Warns that a limiter is after these routes, or, without them, that a response had begun before a refusal. */
export function warnMountedTooLate(warner: Warner, routes?: string): void {
  warner.once(
    "SLUICE_MOUNTED_TOO_LATE",
    routes === undefined
      ? "A request was refused after its response had begun, so its client did not get the refusal. The response was ended. " +
          "Mount the limiter before every handler that writes to the response."
      : `The limiter is mounted after ${routes}, so it only limits requests that no route answers. ` +
          "Mount it before the routes. If it is meant for unmatched requests, mount it on a route: app.all().",
    routes,
  )
}

/** Warns if an earlier mount has decided by a rule of the same name, and clients see both. */
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

/** True if clients see both checks under the same name. They do not see shadow rules. */
function bothAreTold(check: PolicyCheck, other: PolicyCheck): boolean {
  return check.policy === other.policy && !check.shadow && !other.shadow
}

/** The most limiters with different rules that an app creates in handlers on purpose, each for its first request. */
const MOST_CREATED_ON_DEMAND = 20
const createdInHandlers = new Set<string>()
const known = new WeakSet<object>()

/**
 * Notes that a limiter was created in a request handler. The second limiter with the same rules causes a warning, once for
 * all limiters with this logger. The first does not: an app may create a limiter when its first request arrives.
 */
export function noteCreatedInHandler(limiter: CreatedLimiter): void {
  // A handler may mount a limiter again that counts for all requests.
  if (known.has(limiter)) return
  known.add(limiter)
  const { options, ruleSet } = limiter
  const rules = hash("sha256", JSON.stringify([options.service, ruleSet.rules]), "base64url")
  const isFirst = createdInHandlers.size < MOST_CREATED_ON_DEMAND && !createdInHandlers.has(rules)
  createdInHandlers.add(rules)
  if (isFirst) return
  warnOncePerLogger(
    options.logger,
    "SLUICE_CREATED_IN_HANDLER",
    "A limiter was created while a request was being handled. A limiter that each request creates counts only that " +
      "request. Create the limiter once, when the app starts, and mount it: app.use(rateLimit({ … })).",
  )
}

interface CreatedLimiter {
  readonly options: Pick<ParsedOptions, "service" | "logger">
  readonly ruleSet: Pick<RuleSet, "rules">
}

/** Returns up to three of the names as text, because a source may have thousands. */
function withRules(names: readonly string[]): string {
  if (names.length === 0) return ""
  const named = names.slice(0, 3).map((name) => `"${name}"`)
  return ` with rule${names.length > 1 ? "s" : ""} ${named.join(", ")}${names.length > 3 ? ", …" : ""}`
}
