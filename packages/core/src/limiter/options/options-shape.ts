import * as v from "valibot"
import type { Clock } from "../../ground/clock.ts"
import { VERSION } from "../../ground/copies.ts"
import { isUnits } from "../../ground/policy.ts"
import {
  answersAtOnce,
  hasMethods,
  integer,
  logger,
  type ObjectSchema,
  record,
  says,
  strict,
} from "../../ground/shape.ts"
import { show } from "../../ground/show.ts"
import { isBuiltInField } from "../../request/field.ts"
import type { LiveRules } from "../../rules/live-rules.ts"
import { RULE_MEMBERS, unitShape } from "../../rules/parsing/rule-members.ts"
import { onRulesMissing } from "../../rules/until-loaded.ts"
import { headersShape } from "./header-formats.ts"
import { isPriority, PRIORITY as PRIORITIES } from "./priority.ts"

const isFunction = (value: unknown): boolean => typeof value === "function"
/** A member that is validated elsewhere. */
const ANYTHING = v.optional(v.unknown())

/** True if a number is exact. A number outside these bounds may differ from the digits in the source code. */
const isExact = (value: number): boolean => Math.abs(value) <= Number.MAX_SAFE_INTEGER

const isClock = (value: unknown): boolean =>
  hasMethods(value, "now") &&
  (["wait", "onReset"] as const).every(
    (name) => (value as Clock)[name] === undefined || hasMethods(value, name),
  )

const isRedisUrl = (value: unknown): boolean =>
  (typeof value === "string" || value instanceof URL) && /^rediss?:/.test(String(value))

/**
 * Returns a description of a Redis URL or client that was passed instead of a store; otherwise undefined. The clients
 * of all libraries have the method `duplicate`.
 */
const redisName = (value: unknown): string | undefined =>
  isRedisUrl(value) ? "a URL" : hasMethods(value, "duplicate") ? "a Redis client" : undefined

const STORE = "memoryStore(), redisStore({ client }) or another Store"
const REDIS_STORE = "redisStore({ client }) from @sluice/redis, with a client of ioredis or node-redis"
const COST = says("a cost", "0 or a positive whole number, or a function that returns one for a request")
const UNITS_AMOUNT = says(
  "a number of units",
  "0 or a positive whole number, or a function that returns one for a request",
)
const UNITS_EXAMPLE = '{ "tokens": (request) => … }'
const AMOUNT = (said: Parameters<typeof v.custom>[1]) =>
  v.custom((value) => isUnits(value) || isFunction(value), said)
const PRIORITY = says(
  "a priority",
  `${PRIORITIES}, or a function that returns one for a request, not a promise`,
)
const UNITS = record(unitShape, AMOUNT(UNITS_AMOUNT), says("an object of units", UNITS_EXAMPLE))
const SERVICE = says("a service", "a non-empty string, or a number below 2^53")
const time = v.optional(
  integer(says("a time", "a whole number of milliseconds from 1 to 2147483647"), 1, 2_147_483_647),
)
const BOOLEAN = says("a boolean", "true or false")
const SECRET = says("a secret", "a non-empty string")
const POSITIVE = "a positive whole number"
/** The accepted form of `onRejected`, for messages. */
export const ON_REJECTED = "(request, rejection, decision, response) => a rejection, false or undefined"

const FIELD_NAME = says(
  "a name for a field of your own",
  'a name without ":", other than "ip", "service", "method" and "route"',
)

const FIELDS = record(
  v.pipe(
    v.string(FIELD_NAME),
    v.check((name) => !isBuiltInField(name), FIELD_NAME),
    v.check((name) => name !== "__proto__", says("a name for a field of your own", "another name")),
  ),
  v.custom(isFunction, says("a function", "(request) => string or number")),
  says("an object of functions", '{ "user_id": (request) => … }'),
)

/** The members of an inline rule that are options of a limiter by the same name. */
export const RULE_OPTIONS: readonly string[] = Object.keys(RULE_MEMBERS).filter(
  (name) => name !== "cost" && name !== "onStoreFailure" && name !== "rejection",
)

const SAME_VERSION = `rules of version ${VERSION}; "npm ls @sluice/core" lists all versions`

/**
 * True if a value is live rules of any version of Sluice. The method `open` alone does not prove that, because an
 * app's source may have such a method.
 */
function isLive(value: unknown): value is LiveRules {
  const { readsSynchronously } = (value ?? {}) as Partial<LiveRules>
  return hasMethods(value, "open") && typeof readsSynchronously === "boolean"
}

/** Returns the accepted form of `rules` that the app probably meant. */
function rulesInsteadOf(value: unknown): string {
  if (typeof value === "string" && value !== "")
    return `fileRules(${show(value)}) from @sluice/rules, or a list of rules`
  if (hasMethods(value, "load")) return "liveRules(source) from @sluice/rules, for a source of your own"
  return "a list of rules, fileRules(…) from @sluice/rules, dynamoDBRules(…) from @sluice/dynamodb, or a rule book"
}

/** The options as the app passes them. Rules and addresses are validated where they are parsed. */
export const optionsShape: ObjectSchema = strict("the options", {
  ...Object.fromEntries(RULE_OPTIONS.map((name) => [name, ANYTHING])),
  rules: v.optional(
    v.custom(
      (value) => Array.isArray(value) || (isLive(value) && value.coreVersion === VERSION),
      ({ input }) =>
        isLive(input)
          ? says("a set of rules of this version of @sluice/core", SAME_VERSION)
          : says("a valid value for rules", rulesInsteadOf(input)),
    ),
  ),
  defaultRules: ANYTHING,
  onRulesMissing,
  service: v.optional(
    v.union(
      [v.pipe(v.string(), v.minLength(1, SERVICE)), v.pipe(v.number(), v.check(isExact, SERVICE))],
      SERVICE,
    ),
  ),
  store: v.optional(
    v.custom(
      (value) => hasMethods(value, "take", "read", "refund", "reset", "close"),
      ({ input }) => {
        const redis = redisName(input)
        return redis === undefined ? says("a store", STORE) : says(`a store but ${redis}`, REDIS_STORE)
      },
    ),
  ),
  trustedProxies: ANYTHING,
  clientIpHeader: ANYTHING,
  ipv6Prefix: ANYTHING,
  // A `fields` function must be synchronous, because it is called while rules are compiled. The functions that it
  // returns may be async.
  fields: v.optional(v.lazy((value) => (answersAtOnce(value) ? ANYTHING : FIELDS))),
  hashKeys: v.optional(v.boolean(BOOLEAN)),
  hashSecret: v.optional(v.pipe(v.string(SECRET), v.minLength(1, SECRET))),
  cost: v.optional(AMOUNT(COST)),
  units: v.optional(v.lazy((value) => (answersAtOnce(value) ? ANYTHING : UNITS))),
  priority: v.optional(v.custom((value) => isPriority(value) || answersAtOnce(value), PRIORITY)),
  skip: v.optional(v.custom(isFunction, says("a function", "(request) => boolean"))),
  callbackTimeoutMs: time,
  rejection: v.optional(RULE_MEMBERS.rejection.shape),
  onRejected: v.optional(v.custom(isFunction, says("a function", ON_REJECTED))),
  refundWhen: v.optional(v.custom(answersAtOnce, says("a function", "(request, status) => boolean"))),
  headers: v.optional(headersShape),
  onStoreFailure: v.optional(RULE_MEMBERS.onStoreFailure.shape),
  storeTimeoutMs: time,
  instances: v.optional(integer(says("a number of instances", POSITIVE), 1)),
  enabled: v.optional(v.boolean(BOOLEAN)),
  logger,
  clock: v.optional(
    v.custom(
      isClock,
      says(
        "a clock",
        "{ now(): epoch milliseconds, wait?(ms, signal) }, such as manualClock() of @sluice/core/testing",
      ),
    ),
  ),
})

/**
 * Whether the options define rules: an inline rule (complete or not), a list, a source, or a limiter that has rules.
 * An option that is present but undefined also counts, because a lost limit must not mean "no limit".
 */
export function hasRuleOption(options: object): boolean {
  return [...RULE_OPTIONS, "rules", "limiter"].some((name) => name in options)
}
