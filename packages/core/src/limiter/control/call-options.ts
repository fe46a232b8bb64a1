import type { Decider } from "../../decision/decider.ts"
import type { Decision } from "../../decision/decision.ts"
import { DecisionRecord } from "../../decision/decision-record.ts"
import { isDecision, throwNotADecision } from "../../decision/is-decision.ts"
import { parseDuration } from "../../ground/duration.ts"
import { InvalidOptionError, type Problem } from "../../ground/errors.ts"
import {
  mustBeWithHint,
  type OptionCheck,
  problemAt,
  requireNone,
  requireValue,
} from "../../ground/option-checks.ts"
import { isUnits } from "../../ground/policy.ts"
import { show, suggestion } from "../../ground/show.ts"
import { isSignal } from "../../ground/signal.ts"
import type { AcquireOptions, CostOption } from "../interface/limiter.ts"

const MAX_WAITING = 1_000
const UNITS = "0 or a positive whole number"
const checkCost = mustBeWithHint("a cost", UNITS, isUnits)
const ACQUIRE_CHECKS: Readonly<Record<string, OptionCheck>> = {
  cost: checkCost,
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
  readonly cost: number | undefined
  readonly signal: AbortSignal | undefined
  readonly maxWaitMs: number
  readonly maxWaiting: number
}

/** Returns the options of `acquire` with their defaults. Throws InvalidOptionError that lists every problem. */
export function parseAcquireOptions(options: AcquireOptions = {}): ParsedAcquireOptions {
  requireObject(options, ACQUIRE_OPTIONS)
  // Other calls treat null as "no options". For `acquire`, that would silently mean an unlimited wait.
  if (options === null) refuseOptions(options, ACQUIRE_OPTIONS)
  const problems = unknownOptions(options, ACQUIRE_OPTIONS, "acquire()")
  for (const [path, check] of Object.entries(ACQUIRE_CHECKS)) {
    const value = options[path as keyof AcquireOptions]
    if (value !== undefined) problems.push(...problemAt(path, value, check))
  }
  requireNone(problems)
  const { cost, signal, maxWaitMs = Number.POSITIVE_INFINITY, maxWaiting = MAX_WAITING } = options
  return { cost, signal, maxWaitMs, maxWaiting }
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
    ...{ points: ["cost"], units: ["cost"], timeout: ["maxWaitMs"], timeoutMs: ["maxWaitMs"] },
  },
)

/** Returns the `cost` option of a call, if given. Throws InvalidOptionError. */
export function parseCost(options: CostOption): number | undefined {
  // Untyped code may pass null.
  const cost = options?.cost
  if (cost === undefined) return requireKnown(options, ["cost"], "the call")
  requireValue("cost", cost, checkCost)
  return cost
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
  const value = isList ? show(typeof options === "string" ? [options] : options) : show(options)
  const fits = name === "for" ? parseDuration(options) !== undefined : isList || isUnits(options)
  const accepted = `an object such as { ${name}: ${fits ? value : name === "for" ? '"1 hour"' : "3"} }`
  throw new InvalidOptionError([{ path: "", message, accepted }])
}

/** Throws InvalidOptionError if the value is not a number of units. */
export function requireUnits(units: number): void {
  requireValue("units", units, checkUnits)
}

const checkUnits = mustBeWithHint("a number of units", UNITS, isUnits)

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
