import { type Clock, soundTime, steadyClock } from "../../ground/clock.ts"
import { InvalidOptionError, type Problem } from "../../ground/errors.ts"
import { ignoreRejection } from "../../ground/maybe-promise.ts"
import { type OnStoreFailure, PERMITS, REQUESTS } from "../../ground/policy.ts"
import { isWorker } from "../../ground/runtime.ts"
import { hasMethods, readShape } from "../../ground/shape.ts"
import { classOf, locate, show, suggestion } from "../../ground/show.ts"
import type { Logger } from "../../ground/warnings.ts"
import { type ClientAddressOptions, clientAddressProblems } from "../../request/client-address-options.ts"
import type { LiveRules, UntilLoaded } from "../../rules/live-rules.ts"
import { mostAdmitted } from "../../rules/parsing/most-admitted.ts"
import { parseCodeRules, parseRule } from "../../rules/parsing/parse-rule.ts"
import { fillRejection, rejectionProblems } from "../../rules/parsing/rejection-members.ts"
import type { ParsedRejection } from "../../rules/rejection.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import { parseUntilLoaded, undecided } from "../../rules/until-loaded.ts"
import { foreignStore } from "../../stores/foreign-store.ts"
import { memoryStore } from "../../stores/memory/memory-store.ts"
import type { Store } from "../../stores/store.ts"
import type { OnRejected } from "./answer-options.ts"
import { inOurNames, OPTION_NAMES, RULE_NAMES } from "./foreign-names.ts"
import { type HeaderFormat, headerFormats } from "./header-formats.ts"
import type { LimiterOptions } from "./options.ts"
import { optionsShape, RULE_OPTIONS } from "./options-shape.ts"
import { workerProblem } from "./worker-rules.ts"

/**
 * Returns how many of a unit a request takes, or the function that returns it. Undefined if the options do not name the
 * unit. Never undefined for "requests".
 */
export type AmountOf = (unit: string) => number | ((request: unknown) => unknown) | undefined

/** The options after validation, with every default filled in. */
export interface ParsedOptions {
  /** Undefined if the app passes `rules`. */
  readonly inline: ParsedRule | undefined
  readonly rules: readonly ParsedRule[] | LiveRules
  /** The behavior until live rules are loaded. */
  readonly untilLoaded: UntilLoaded
  readonly service: string
  readonly store: Store
  readonly ownsStore: boolean
  readonly clientAddress: ClientAddressOptions
  /** Returns the function that reads a field of the app's own; undefined if there is no such field. */
  readonly extractorOf: (name: string) => ((request: unknown) => unknown) | undefined
  /** The names of the app's own fields, if they are known in advance. */
  readonly extractorNames: readonly string[]
  /** True if the app has its own fields, or may have some. */
  readonly hasExtractors: boolean
  /** If undefined, only the values of secret fields are hashed. */
  readonly hashKeys: boolean | undefined
  readonly hashSecret: string
  readonly amountOf: AmountOf
  /** The names of units that calls may use. Undefined if they are not known in advance. */
  readonly unitNames: readonly string[] | undefined
  /** The priority of requests that wait. */
  readonly priority: number | ((request: unknown) => unknown)
  readonly skip: ((request: unknown) => unknown) | undefined
  readonly onRejected: OnRejected<unknown> | undefined
  readonly refundWhen: ((request: unknown, status: number) => unknown) | undefined
  /** The dialects of the headers; empty if there are none. */
  readonly headers: readonly HeaderFormat[]
  /** The response to requests that rules without their own `rejection` refuse. */
  readonly rejection: ParsedRejection
  readonly onStoreFailure: OnStoreFailure
  readonly storeTimeoutMs: number
  readonly callbackTimeoutMs: number
  readonly instances: number
  readonly enabled: boolean
  readonly logger: Logger | undefined
  readonly clock: Clock
  /**
   * Returns the current time for headers. The limiter's steady clock does not follow corrections of the system time.
   */
  readonly wallClock: () => number
}

/** Returns the options with their defaults. Throws {@link InvalidOptionError} that lists every problem. */
export function parseOptions(value: unknown): ParsedOptions {
  if (isForeign(value)) throw new InvalidOptionError([notOptions(value)])
  const { good, problems: found } = readShape(optionsShape, value)
  const problems: Problem[] = found.map((problem) => locate("", problem))
  // The value is not an options object, so every other option would be reported as missing.
  if (problems.some(({ path }) => path === "")) throw new InvalidOptionError(problems)
  const options = good as LimiterOptions<unknown>
  problems.push(...clientAddressProblems(options))
  problems.push(...rejectionProblems(options.rejection).map((problem) => locate("", problem)))
  const rules = parseOptionRules(options, problems)
  if (problems.length > 0) throw new InvalidOptionError(inOurNames(problems, OPTION_NAMES))
  const { trustedProxies, clientIpHeader, ipv6Prefix, clock = steadyClock } = options
  return {
    ...rules,
    service: String(options.service ?? "default"),
    store: options.store === undefined ? memoryStore({ clock }) : foreignStore(options.store),
    ownsStore: options.store === undefined,
    clientAddress: { trustedProxies, clientIpHeader, ipv6Prefix },
    extractorOf: byName("fields", options.fields, (value) => typeof value === "function"),
    extractorNames: Object.keys(options.fields ?? {}),
    hasExtractors: typeof options.fields === "function" || Object.keys(options.fields ?? {}).length > 0,
    hashKeys: options.hashKeys,
    hashSecret: options.hashSecret ?? "",
    priority: options.priority ?? 0,
    skip: options.skip,
    onRejected: options.onRejected,
    refundWhen: options.refundWhen,
    headers: headerFormats(options.headers ?? "draft-11"),
    rejection: fillRejection(options.rejection ?? {}),
    onStoreFailure: options.onStoreFailure ?? "local",
    storeTimeoutMs: options.storeTimeoutMs ?? 50,
    callbackTimeoutMs: options.callbackTimeoutMs ?? 1_000,
    instances: options.instances ?? 1,
    enabled: options.enabled ?? true,
    logger: options.logger,
    clock,
    wallClock: options.clock === undefined ? () => Date.now() : () => soundTime(clock),
  }
}

/** Parses a single inline rule of a limiter or of a route. Its field defaults to "ip". `units` are the limiter's. */
export function parseInlineRule(
  value: object,
  units: UnitOptions,
  defaultName?: string,
): {
  readonly rule?: ParsedRule
  readonly problems: readonly Problem[]
} {
  // An explicit undefined counts as a missing option.
  const { field = "ip", name = defaultName } = value as { readonly field?: unknown; readonly name?: unknown }
  const { problems, rule } = parseRule({ ...value, field, name }, "")
  if (rule === undefined) return { problems: inOurNames(problems, RULE_NAMES) }
  const unfit = fitProblems(units, [rule], "")
  return unfit.length > 0 ? { problems: unfit } : { rule, problems }
}

type UnitOptions = Pick<ParsedOptions, "amountOf" | "unitNames">

/**
 * Returns how many of each unit a request takes by the options. Adds a problem if both `cost` and `units` say how many
 * requests it counts as.
 */
function parseUnits({ cost, units }: LimiterOptions<unknown>, problems: Problem[]): UnitOptions {
  const amountOf = byName("units", units, (value) => typeof value === "number" || typeof value === "function")
  const requests = amountOf(REQUESTS)
  if (cost !== undefined && requests !== undefined) {
    const message = 'is given together with "cost", which is short for it'
    problems.push({ path: `units.${REQUESTS}`, message, accepted: "one of the two" })
  }
  const isListed = typeof units === "object"
  return {
    amountOf: (unit) => (unit === REQUESTS ? (requests ?? cost ?? 1) : unit === PERMITS ? 1 : amountOf(unit)),
    unitNames: isListed ? [...new Set([REQUESTS, ...Object.keys(units)])] : undefined,
  }
}

/** Returns a problem for each rule in code that does not fit the options or the runtime. */
function fitProblems(units: UnitOptions, rules: readonly ParsedRule[], place: string): Problem[] {
  return [...unitProblems(units, rules, place), ...(isWorker() ? workerProblems(rules, place) : [])]
}

/** Returns a problem for each rule that a Cloudflare Worker cannot apply. */
function workerProblems(rules: readonly ParsedRule[], place: string): Problem[] {
  return rules.flatMap(({ throttle }, index) => {
    const message = workerProblem(throttle)
    if (message === undefined) return []
    const path = place === "" ? "throttle" : `${place}[${index}].throttle`
    return [
      { path, message, accepted: '"hard", "soft" without a queue, or "elastic" with a signal and no queue' },
    ]
  })
}

/**
 * Returns a problem for each rule in code whose unit the options do not name, because the name is probably misspelled.
 * Also returns a problem for each rule that would refuse every request, because a fixed amount exceeds the units that
 * the rule ever admits. A function is not checked, because it may return a smaller amount.
 */
function unitProblems(
  { amountOf, unitNames = [REQUESTS] }: UnitOptions,
  rules: readonly ParsedRule[],
  place: string,
): Problem[] {
  return rules.flatMap((rule, index) => {
    const { counts } = rule
    const amount = amountOf(counts)
    if (amount === undefined) {
      const path = place === "" ? "counts" : `${place}[${index}].counts`
      const message = `${show(counts)} is not a member of the option units${suggestion(counts, unitNames)}`
      const accepted = unitNames.map((name) => JSON.stringify(name)).join(" or ")
      return [{ path, message, accepted: `${accepted}, or a unit that is added there` }]
    }
    if (typeof amount !== "number") return []
    // Ignore overrides, because their clients have other limits.
    const { overrides: _clients, ...ofOthers } = rule
    const most =
      typeof rule.limit === "number" ? mostAdmitted(ofOthers, rule.limit) : Number.POSITIVE_INFINITY
    const taken = amount * rule.cost
    if (taken <= most) return []
    const message = `a request of cost ${amount} takes ${taken} units of rule "${rule.name}", which never admits more than ${most}`
    const path = counts === REQUESTS ? "cost" : `units.${counts}`
    return [{ path, message, accepted: `0 to ${Math.floor(most / rule.cost)}, or a function` }]
  })
}

function parseOptionRules(
  options: LimiterOptions<unknown>,
  problems: Problem[],
): Pick<ParsedOptions, "inline" | "rules" | "untilLoaded" | "amountOf" | "unitNames"> {
  const units = parseUnits(options, problems)
  const untilLoaded = parseMissing(options, units, problems)
  const given = RULE_OPTIONS.filter((name) => options[name as keyof typeof options] !== undefined)
  // Invalid rules are still rules, so do not report an inline rule as missing.
  const hasRules = options.rules !== undefined || problems.some(({ path }) => path === "rules")
  if (!hasRules) {
    const { rule, problems: wrong } = parseInlineRule(
      Object.fromEntries(given.map((name) => [name, options[name as keyof typeof options]])),
      units,
    )
    // A member whose value is a promise was removed from the options and reported, so do not also report it as
    // missing.
    const known = new Set(problems.map(({ path }) => path))
    problems.push(...wrong.filter(({ path }) => !known.has(path)))
    return { inline: rule, rules: [], untilLoaded, ...units }
  }
  for (const name of given) {
    const accepted = `"${name}" as a member of a rule in "rules", or an inline rule without "rules"`
    problems.push({ path: name, message: 'is given together with "rules"', accepted })
  }
  // `rules` is undefined if its problem was already reported.
  if (!Array.isArray(options.rules)) {
    return { inline: undefined, rules: options.rules as LiveRules, untilLoaded, ...units }
  }
  const parsed = parseCodeRules(options.rules, "rules")
  problems.push(...parsed.problems, ...fitProblems(units, parsed.rules, "rules"))
  return { inline: undefined, rules: parsed.rules, untilLoaded, ...units }
}

const ADMIT: UntilLoaded = { defaultRules: [], onRulesMissing: "allow" }

/** Returns the behavior until the first load, from the limiter's own options or else from its live rules. */
function parseMissing(
  options: LimiterOptions<unknown>,
  units: UnitOptions,
  problems: Problem[],
): UntilLoaded {
  const { rules } = options
  const own = parseUntilLoaded(options, problems)
  if (own !== undefined) problems.push(...fitProblems(units, own.defaultRules, "defaultRules"))
  // Rules of the wrong kind have been reported already.
  if (problems.some(({ path }) => path === "rules")) return ADMIT
  if (rules === undefined || Array.isArray(rules)) {
    for (const path of ["defaultRules", "onRulesMissing"] as const) {
      if (options[path] === undefined) continue
      const message = "has no effect with rules that never change"
      const accepted = `fileRules(…), dynamoDBRules(…) or a rule book in "rules", or no ${path}`
      problems.push({ path, message, accepted })
    }
    return ADMIT
  }
  const live = rules as LiveRules
  const chosen = own ?? live.untilLoaded
  if (chosen === undefined && !live.readsSynchronously) problems.push(undecided(live))
  return chosen ?? ADMIT
}

/**
 * Returns the members of an option that is an object, or a function that returns a member by its name. The object's
 * members have been checked.
 */
function byName<Value>(
  option: string,
  given: Readonly<Record<string, Value>> | ((name: string) => Value | undefined) | undefined,
  isValid: (value: unknown) => boolean,
): (name: string) => Value | (() => never) | undefined {
  if (given === undefined) return () => undefined
  if (typeof given !== "function") return (name) => (Object.hasOwn(given, name) ? given[name] : undefined)
  return (name) => {
    const made = attempt(() => given(name))
    if ("value" in made && (made.value === undefined || isValid(made.value))) return made.value
    if ("value" in made) ignoreRejection(made.value)
    // The app could not catch an error that is thrown while rules are compiled. Throw when the member is used instead, so
    // that the failure is logged. The field then counts as missing, and the amount as 1.
    return () => {
      throw "error" in made
        ? made.error
        : new TypeError(`"${option}" did not return a function for "${name}"`)
    }
  }
}

function attempt<T>(action: () => T): { readonly value: T } | { readonly error: unknown } {
  try {
    return { value: action() }
  } catch (error) {
    return { error }
  }
}

/**
 * True if the value is undefined or a foreign object, such as the request if an app mounts `rateLimit` instead of
 * `rateLimit()`.
 */
function isForeign(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return value === undefined
  const prototype: unknown = Object.getPrototypeOf(value)
  // An app may pass an instance of a class as its options.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null || Array.isArray(value)
  const isLimiter = hasMethods(value, "decide", "peek")
  return isLimiter || (!isPlain && !["limit", "window", "per", "rules"].some((name) => name in value))
}

/** Returns the problem for a value that is not options, without showing the value's content. */
function notOptions(value: unknown): Problem {
  const accepted = 'an object such as { limit: 100, window: "1 minute" }'
  if (value === undefined) return { path: "", message: "no options were given", accepted }
  if (hasMethods(value, "decide", "peek")) {
    return { path: "", message: "a limiter is not an options object", accepted: "{ limiter }, to share it" }
  }
  const hint = "; mount the result of rateLimit(options), not rateLimit itself"
  // Do not show the value as JSON: it may be a request, whose headers must not be logged.
  return {
    path: "",
    message: `${classOf(value) ?? "an object"} is not an options object`,
    accepted: `${accepted}${hint}`,
  }
}
