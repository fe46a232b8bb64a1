import { LONGEST_BLOCK_MS } from "../../decision/block-watch.ts"
import { DURATION_ACCEPTED, formatDuration, parseDuration } from "../../ground/duration.ts"
import { InvalidOptionError } from "../../ground/errors.ts"
import { hintFor } from "../../ground/hints.ts"
import { show } from "../../ground/show.ts"
import type { Amounts } from "../callbacks/callback-results.ts"
import type { BlockOptions, PeekOptions } from "../interface/limiter.ts"
import { parseAmounts, requireKnown, type UnitNames } from "./call-options.ts"

/** The options of `block`, with the duration in milliseconds. */
export interface ParsedBlockOptions {
  readonly forMs: number
  readonly rules: readonly string[] | undefined
}

/** Returns the parsed options of `block`. Throws InvalidOptionError. */
export function parseBlockOptions(options: BlockOptions): ParsedBlockOptions {
  // Untyped code may omit the options.
  const given: Partial<BlockOptions> = options ?? {}
  requireKnown(given, ["for", "rules"], "block()")
  const forMs = parseDuration(given.for)
  if (forMs !== undefined && forMs <= LONGEST_BLOCK_MS) return { forMs, rules: given.rules }
  const message =
    given.for === undefined
      ? "is missing"
      : `${show(given.for)} is ${forMs === undefined ? "not a duration" : "too long"}`
  const accepted = `${DURATION_ACCEPTED}; at most ${formatDuration(LONGEST_BLOCK_MS)}`
  const hint = hintFor(given.for, "a duration", accepted)
  throw wrong("for", message + hint, accepted)
}

/** The options of `peek` or `explain`, with the amounts that they give. */
export interface ParsedPeekOptions {
  readonly amounts: Amounts | undefined
  readonly rules: readonly string[] | undefined
}

/** Returns the parsed options of `peek` or `explain`. Throws InvalidOptionError. */
export function parsePeekOptions(
  options: PeekOptions | undefined,
  call: string,
  unitNames: UnitNames,
): ParsedPeekOptions {
  // Untyped code may pass null.
  const given: PeekOptions = options ?? {}
  requireKnown(given, ["cost", "units", "rules"], call)
  const { cost, units, rules } = given
  return { amounts: parseAmounts({ cost, units }, unitNames), rules }
}

/** Returns the error of `peek` for a named client whose limit, window or period is computed from its requests. */
export function limitUnknown(rule: string): InvalidOptionError {
  const message = `is named by rule ${show(rule)}, whose limit, window or anchor is a function of the request`
  return wrong("request", message, "a request of the client, from which the function can compute them")
}

/** Returns the error of `block` for a client that no rule could refuse, because a block would have no effect. */
export function refusedByNone(): InvalidOptionError {
  return wrong(
    "request",
    "is not limited by any of these rules, so a block would have no effect",
    'a request that a rule limits: the request has the rule\'s field (for "ip": { remoteAddress: "192.0.2.7" }) and is not ' +
      "on its allow list, and the rule has a finite limit and is not a shadow rule; to block by a rule for the whole " +
      'service, name the rule in "rules"',
  )
}

/** Returns the error of `grant` for a number of units that cannot be granted. */
export function notGrantable(units: unknown): InvalidOptionError {
  const accepted = "a whole number below 2^53, but not 0; a negative number takes granted units back"
  return wrong("units", `${show(units)} is not a number of units`, accepted)
}

/** Returns the error of `grant` for a client that no rule with `per` limits. */
export function grantedByNone(): InvalidOptionError {
  return wrong(
    "request",
    "is not limited by any rule with per, so a grant would have no effect",
    "a client that a rule with per limits: it is on neither list of the rule, and its limit is known and finite",
  )
}

/** Returns the error of `grant` or `usage` for a named rule without `per`. `instead` is what to do for such a rule. */
export function notByCalendar(rule: string, instead: string): InvalidOptionError {
  const accepted = `rules with per, such as per: "month"; for other rules, ${instead}`
  return wrong("rules", `contains ${show(rule)}, which has no calendar period`, accepted)
}

function wrong(path: string, message: string, accepted: string): InvalidOptionError {
  return new InvalidOptionError([{ path, message, accepted }])
}
