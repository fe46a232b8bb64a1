import * as v from "valibot"
import { InvalidOptionError, type Problem } from "../ground/errors.ts"
import { integer, readShape, says, strict } from "../ground/shape.ts"
import { locate } from "../ground/show.ts"
import type { LimiterOptions } from "../limiter/options/options.ts"
import { type ParsedOptions, parseOptions } from "../limiter/options/parse-options.ts"
import type { ClientAddressOptions } from "../request/client-address-options.ts"
import type { ParsedRule, Rule } from "../rules/rule.ts"
import type { ReplayRequest } from "./replay.ts"

/** Options of `createReplay`. */
export interface ReplayOptions extends ClientAddressOptions {
  /** The rules as in code, or as a rule book has parsed them. */
  readonly rules: readonly Rule<ReplayRequest>[] | readonly ParsedRule[]
  /** The service that the requests belong to. Default: "default". */
  readonly service?: string | number | undefined
  /** Functions that read the app's own fields from a request, as in a limiter. */
  readonly fields?: LimiterOptions<ReplayRequest>["fields"]
  /** How many of each unit besides requests a request takes, as in a limiter. */
  readonly units?: LimiterOptions<ReplayRequest>["units"]
  /** Maximum number of counters, from 1 to 100 million. A counter needs about 60 bytes. Default: 4 million. */
  readonly maxKeys?: number | undefined
}

const DEFAULT_MAX_KEYS = 4_000_000
const MOST_KEYS = 100_000_000
const ANYTHING = v.optional(v.unknown())

const shape = strict("the options", {
  rules: v.custom(
    (value) => Array.isArray(value),
    says("a list of rules", "a list of rules, as in a limiter's options"),
  ),
  service: ANYTHING,
  fields: ANYTHING,
  units: ANYTHING,
  maxKeys: v.optional(
    integer(says("a valid number of keys", `a whole number from 1 to ${MOST_KEYS}`), 1, MOST_KEYS),
  ),
  trustedProxies: ANYTHING,
  clientIpHeader: ANYTHING,
  ipv6Prefix: ANYTHING,
})

/** The options of a replay with their defaults. */
export interface ParsedReplayOptions extends ParsedOptions {
  readonly maxKeys: number
  readonly rules: readonly ParsedRule[]
}

/** Returns the options with their defaults. Throws {@link InvalidOptionError} that lists every problem. */
export function parseReplayOptions(value: unknown): ParsedReplayOptions {
  const { good, problems } = readShape(shape, value)
  if (problems.length > 0)
    throw new InvalidOptionError(problems.map((problem): Problem => locate("", problem)))
  const { maxKeys = DEFAULT_MAX_KEYS, rules, ...others } = good as unknown as ReplayOptions
  // An array may have holes, which `every` would skip.
  const areParsed = rules.length > 0 && Array.from<unknown>(rules).every(isParsed)
  const parsed = parseOptions({ ...others, hashKeys: false, rules: areParsed ? [] : rules })
  const own = areParsed ? (rules as readonly ParsedRule[]) : (parsed.rules as readonly ParsedRule[])
  return { ...parsed, maxKeys, rules: own }
}

/** True if a rule book has parsed the rule. */
function isParsed(rule: unknown): rule is ParsedRule {
  const { windowMs, fields }: Partial<ParsedRule> = (rule as ParsedRule | null) ?? {}
  return typeof windowMs === "number" && Array.isArray(fields)
}
