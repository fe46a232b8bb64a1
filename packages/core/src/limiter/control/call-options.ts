import type { Decider } from "../../decision/decider.ts"
import type { Decision } from "../../decision/decision.ts"
import { DecisionRecord } from "../../decision/decision-record.ts"
import { isDecision, throwNotADecision } from "../../decision/is-decision.ts"
import type { UsedUnits } from "../../decision/settlement.ts"
import { parseDuration } from "../../ground/duration.ts"
import { InvalidOptionError, type Problem } from "../../ground/errors.ts"
import {
  mustBe,
  mustBeWithHint,
  type OptionCheck,
  problemAt,
  requireNone,
  requireValue,
} from "../../ground/option-checks.ts"
import { isUnits, PERMITS, REQUESTS } from "../../ground/policy.ts"
import { show, suggestion } from "../../ground/show.ts"
import { isSignal } from "../../ground/signal.ts"
import type { Amounts } from "../callbacks/callback-results.ts"
import type { AcquireOptions, AmountOptions, Limiter } from "../interface/limiter.ts"
import { isPriority, PRIORITY } from "../options/priority.ts"

const MAX_WAITING = 1_000
const UNITS = "0 or a positive whole number"
const checkCost = mustBeWithHint("a cost", UNITS, isUnits)
const checkBoolean = mustBe("a boolean", "true or false", (value) => typeof value === "boolean")
const checkUnits = mustBeWithHint("a number of units", UNITS, isUnits)
const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const checkAmounts = mustBe(
  "an object of units",
  "{ tokens: 1500 }, or a number of requests as cost",
  isObject,
)
const ACQUIRE_CHECKS: Readonly<Record<string, OptionCheck>> = {
  cost: checkCost,
  units: checkAmounts,
  priority: mustBeWithHint("a priority", PRIORITY, isPriority),
  signal: mustBeWithHint("a signal", "an AbortSignal", isSignal),
  maxWaitMs: mustBeWithHint(
    "a time",
    "0 or a positive number of milliseconds",
    (value) => typeof value === "number" && value >= 0,
  ),
  maxWaiting: mustBeWithHint(
    "a number of requests",
    "a positive whole number, or Infinity",
    (value) => value === Number.POSITIVE_INFINITY || (isUnits(value) && value > 0),
  ),
}
const ACQUIRE_OPTIONS: readonly string[] = Object.keys(ACQUIRE_CHECKS)

export interface ParsedAcquireOptions {
  readonly amounts: Amounts | undefined
  readonly priority: number | undefined
  readonly signal: AbortSignal | undefined
  readonly maxWaitMs: number
  readonly maxWaiting: number
}

/** Returns the options of `acquire` with their defaults. Throws InvalidOptionError that lists every problem. */
export function parseAcquireOptions(options: AcquireOptions = {}, units: UnitNames): ParsedAcquireOptions {
  requireObject(options, ACQUIRE_OPTIONS)
  // Other calls treat null as "no options". For `acquire`, that would silently mean an unlimited wait.
  if (options === null) refuseOptions(options, ACQUIRE_OPTIONS)
  const problems = unknownOptions(options, ACQUIRE_OPTIONS, "acquire()")
  for (const [path, check] of Object.entries(ACQUIRE_CHECKS)) {
    const value = options[path as keyof AcquireOptions]
    if (value !== undefined) problems.push(...problemAt(path, value, check))
  }
  requireNone(problems)
  const {
    cost,
    units: given,
    priority,
    signal,
    maxWaitMs = Number.POSITIVE_INFINITY,
    maxWaiting = MAX_WAITING,
  } = options
  return { amounts: parseAmounts({ cost, units: given }, units), priority, signal, maxWaitMs, maxWaiting }
}

/**
 * Returns a problem for each unknown option. If unknown options were ignored, a misspelled `cost` would become 1, a
 * wait would be unlimited, and `reset` would reset all counters instead of one.
 */
function unknownOptions(options: object, names: readonly string[], call: string): Problem[] {
  return Object.keys(options)
    .filter((name) => !names.includes(name))
    .map((name) => {
      const message = `${show(name)} is not an option of ${call}`
      const here = NAMES_HERE[name]?.find((each) => names.includes(each))
      const hint = here === undefined ? suggestion(name, names) : `; use "${here}" instead`
      return { path: name, message: message + hint, accepted: names.join(", ") }
    })
}

/** Names of an option in other calls and in other rate limiters. */
const NAMES_HERE: Readonly<Record<string, readonly string[] | undefined>> = Object.assign(
  Object.create(null),
  {
    ...{ policies: ["rules"], policy: ["rules"] },
    ...{ duration: ["for"], durationMs: ["for"], ms: ["for"], until: ["for"] },
    ...{ points: ["cost"], unit: ["units"], timeout: ["maxWaitMs"], timeoutMs: ["maxWaitMs"] },
    ...{ weight: ["cost"], highWater: ["maxWaiting"] },
  },
)

/**
 * Returns the amounts that the options of a call give, if they give any. `units` are the units that calls may name;
 * undefined if they may name any. Throws InvalidOptionError.
 */
export function parseAmounts(options: AmountOptions, units: UnitNames): Amounts | undefined {
  // Untyped code may pass null.
  const { cost, units: given } = options ?? NOTHING
  if (cost === undefined && given === undefined) return requireKnown(options, ["cost", "units"], "the call")
  const amounts = new Map(given === undefined ? [] : parseUnits("units", given, units))
  if (cost === undefined) return amounts
  requireValue("cost", cost, checkCost)
  const isTwice = amounts.has(REQUESTS)
  const message = 'is given together with "cost", which is short for it'
  requireNone(isTwice ? [{ path: `units.${REQUESTS}`, message, accepted: "one of the two" }] : [])
  return amounts.set(REQUESTS, cost)
}

/** Returns the units that a request has used, by unit. A number means requests. Throws InvalidOptionError. */
export function parseUsed(used: unknown, units: UnitNames): UsedUnits {
  if (!isObject(used)) {
    requireValue("units", used, checkUnits)
    return new Map([[REQUESTS, used as number]])
  }
  return new Map(parseUnits("units", used, units))
}

/** Returns how a reservation is settled. Throws InvalidOptionError. */
export function parseSettlement(
  options: Parameters<Limiter["settleReservation"]>[1],
  units: UnitNames,
): { readonly used: UsedUnits; readonly refund: boolean } {
  if (options === undefined) return { used: new Map(), refund: false }
  requireKnown(options, ["used", "refund"], "settleReservation()")
  const { used = {}, refund = false } = options
  requireValue("refund", refund, checkBoolean)
  return { used: parseUsed(used, units), refund }
}

/** The names of units that calls may use. Undefined if they may use any. */
export type UnitNames = readonly string[] | undefined

const NOTHING: AmountOptions = {}

function parseUnits(path: string, given: object, known: UnitNames): readonly [string, number][] {
  requireValue(path, given, checkAmounts)
  const entries = Object.entries(given).filter(([, units]) => units !== undefined)
  requireNone(
    entries.flatMap(([name, units]) => {
      if (name === PERMITS || known?.includes(name) === false)
        return [unknownUnit(`${path}.${name}`, name, known)]
      return problemAt(`${path}.${name}`, units, checkUnits)
    }),
  )
  return entries
}

/** Returns the problem of a unit that the option `units` does not name, or of permits. */
function unknownUnit(path: string, name: unknown, known: readonly string[] = [REQUESTS]): Problem {
  if (name === PERMITS) {
    const message = `${show(name)} cannot be given, because a request takes permits by the rules with concurrent`
    return { path, message, accepted: "no such unit; release() gives the permits of a decision back" }
  }
  const message = `${show(name)} is not a unit of this limiter${suggestion(String(name), known)}`
  return { path, message, accepted: `${known.join(", ")}; the option units of the limiter names units` }
}

/** Throws InvalidOptionError for unknown options of a call. */
export function requireKnown(options: object, names: readonly string[], call: string): undefined {
  requireObject(options, names)
  requireNone(unknownOptions(options ?? {}, names, call))
  return undefined
}

/**
 * Throws InvalidOptionError for anything but a decision made by this limiter. Examples are a promise of a decision,
 * whose units would never be refunded, and a decision of another limiter, whose clients it would affect.
 */
export function requireDecision(decision: unknown, decider: Pick<Decider, "isOwn">): void {
  if (!isDecision(decision)) throwNotADecision(decision)
  const fault = faultOf(decision, decider)
  requireNone(fault === undefined ? [] : [{ path: "decision", ...fault }])
}

function faultOf(decision: Decision, decider: Pick<Decider, "isOwn">): Omit<Problem, "path"> | undefined {
  if (DecisionRecord.isCopy(decision)) {
    const accepted = "the original decision, in the process that made it"
    return { message: "is a copy, which has no record of the units to give back", accepted }
  }
  if (decider.isOwn(decision)) return undefined
  const accepted =
    "a decision of this limiter; if several limiters decide a request, use limiter.decisionOn(request)"
  return { message: `was made by another limiter, which has a rule ${show(decision.policy)}`, accepted }
}

/**
 * Throws InvalidOptionError unless options are an object. A bare number is an error, because it is the cost in other
 * rate limiters.
 */
function requireObject(options: unknown, names: readonly string[]): undefined {
  if (typeof options === "object" && !Array.isArray(options)) return undefined
  return refuseOptions(options, names)
}

/** Throws InvalidOptionError with an example of valid options, which contains the first of `names`. */
function refuseOptions(options: unknown, [name]: readonly string[]): never {
  const message = `${show(options)} is not an object of options`
  const isList = name === "rules"
  const value = show(isList && !Array.isArray(options) ? [String(options)] : options)
  const fits = name === "for" ? parseDuration(options) !== undefined : isList || isUnits(options)
  const accepted = `an object such as { ${name}: ${fits ? value : name === "for" ? '"1 hour"' : "3"} }`
  throw new InvalidOptionError([{ path: "", message, accepted }])
}

/** Throws InvalidOptionError if the value is not a number of units. */
export function requireUnits(units: number): void {
  requireValue("units", units, checkUnits)
}

const checkWork = mustBe("a function", "(decision) => …", (value) => typeof value === "function")

/** Throws InvalidOptionError if the work of `run` is not a function. */
export function requireWork(work: unknown): void {
  requireValue("work", work, checkWork)
}

/** Returns the unit of `takeUpTo`. Throws InvalidOptionError. */
export function parseTakeUpToUnit(
  options: { readonly unit?: string | undefined } | undefined,
  known: UnitNames,
): string {
  if (options === undefined) return REQUESTS
  requireKnown(options, ["unit"], "takeUpTo()")
  const unit: unknown = options?.unit ?? REQUESTS
  const isKnown = typeof unit === "string" && unit !== PERMITS && known?.includes(unit) !== false
  requireNone(isKnown ? [] : [unknownUnit("unit", unit, known)])
  return unit as string
}

/** Returns the names in the option `rules`. Each must be one of `names`. Throws InvalidOptionError. */
export function parseRuleNames(
  given: readonly string[] | undefined,
  names: readonly string[],
): readonly string[] | undefined {
  if (given === undefined) return undefined
  const known = names.map((name) => JSON.stringify(name)).join(", ")
  const unknown = Array.isArray(given) ? given.filter((name) => !names.includes(name)) : [given]
  const noun = Array.isArray(given) ? "the name of a rule" : "a list"
  const accepted = known === "" ? "no names, because there are no rules" : `a list of these names: ${known}`
  requireNone(unknown.map((name) => ({ path: "rules", message: `${show(name)} is not ${noun}`, accepted })))
  return given
}
