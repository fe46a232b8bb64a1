import { z } from "zod"
import type { Clock } from "../../ground/clock.ts"
import { isUnits } from "../../ground/policy.ts"
import { answersAtOnce, says, strict } from "../../ground/shape.ts"
import { show } from "../../ground/show.ts"
import { isBuiltInField } from "../../request/field.ts"
import { OpenBook } from "../../rules/book/open-book.ts"
import { onRulesMissing } from "../../rules/book/until-loaded.ts"
import { RULE_MEMBERS } from "../../rules/parsing/parse-rule.ts"
import { member } from "../../rules/parsing/rule-members.ts"
import { HEADER_DIALECTS, type HeaderDialect } from "./answer-options.ts"

const isFunction = (value: unknown): boolean => typeof value === "function"
const test = (accepted: string) => z.custom<unknown>(answersAtOnce, says("a function", accepted)).optional()
const has =
  (...methods: string[]) =>
  (value: unknown): boolean =>
    // Functions may have methods too: Date is a clock.
    methods.every((name) => isFunction((value as Record<string, unknown> | null | undefined)?.[name]))

/** Digits beyond are others than those that were written. */
const isExact = (value: number): boolean => Math.abs(value) <= Number.MAX_SAFE_INTEGER

const isClock = (value: unknown): boolean =>
  has("now")(value) && ((value as Clock).wait === undefined || has("wait")(value))

const isRedisUrl = (value: unknown): boolean =>
  (typeof value === "string" || value instanceof URL) && /^rediss?:/.test(String(value))

/** What is given for a store and leads to one: a client of Redis, by what those of all libraries have, or its URL. */
const redisName = (value: unknown): string | undefined =>
  isRedisUrl(value) ? "a URL" : has("duplicate")(value) ? "a Redis client" : undefined

const STORE = "memoryStore(), redisStore({ client }) or another Store"
const REDIS_STORE = "redisStore({ client }), of @sluice/core/redis, with a client of ioredis or node-redis"
const COST = says("a cost", "a whole number from 0 up, or a function that yields one for a request")
const SERVICE = says("a service", "a non-empty text, or a number up to 9007199254740991")
const TIMEOUT = "milliseconds from 1 to 2147483647"
const POSITIVE = "a whole number from 1 up"

const FIELD_NAME = says("a field's name", "a name that no built-in field has")

/** The members of an inline rule that are options of a limiter by the same name. */
export const RULE_OPTIONS: readonly string[] = RULE_MEMBERS.filter(
  (name) => name !== "cost" && name !== "onStoreFailure",
)

/** The options as they are given; what is in rules and in addresses is looked at where those are read. */
export const optionsShape: z.ZodObject = strict("the options", {
  ...Object.fromEntries(RULE_OPTIONS.map((name) => [name, z.unknown().optional()])),
  rules: z
    .custom<unknown>((value) => Array.isArray(value) || has("load")(value) || value instanceof OpenBook, {
      error: ({ input }) =>
        says(
          "rules",
          typeof input === "string" && input !== ""
            ? `fileRules(${show(input)}), or a list of rules`
            : "a list of rules, a rule source or a rule book",
        ).error,
    })
    .optional(),
  defaultRules: z.unknown().optional(),
  onRulesMissing,
  service: z
    .union([z.string(SERVICE).min(1, SERVICE), z.number(SERVICE).refine(isExact, SERVICE)], SERVICE)
    .optional(),
  store: z
    .custom<unknown>(has("take", "peek", "refund", "reset", "close"), {
      error: ({ input }) => {
        const redis = redisName(input)
        return (redis === undefined ? says("a store", STORE) : says(`a store but ${redis}`, REDIS_STORE))
          .error
      },
    })
    .optional(),
  trustedProxies: z.unknown().optional(),
  clientIpHeader: z.unknown().optional(),
  ipv6Prefix: z.unknown().optional(),
  // A function is taken as it is, unless it is async: whoever reads a field does not wait.
  fields: z.preprocess(
    (value, { addIssue }) => {
      // A record does not look at it.
      if (Object.hasOwn(value ?? {}, "__proto__")) {
        addIssue({ code: "custom", path: ["__proto__"], message: says("a field", "another name").error })
      }
      return answersAtOnce(value) ? undefined : value
    },
    z
      .record(
        z.string(FIELD_NAME).refine((name) => !isBuiltInField(name), FIELD_NAME),
        z.custom<unknown>(answersAtOnce, says("a function", "(request) => text or number")),
        says("an object of functions", '{ "user_id": (request) => … }'),
      )
      .optional(),
  ),
  cost: z.custom<unknown>((value) => isUnits(value) || answersAtOnce(value), COST).optional(),
  skip: test("(request) => boolean"),
  onRejected: z
    .custom<unknown>(
      isFunction,
      says("a function", "(request, rejection, decision, response) => rejection, false or nothing"),
    )
    .optional(),
  refundWhen: test("(request, status) => boolean"),
  headers: z
    .custom<unknown>(
      (value) => value === false || HEADER_DIALECTS.includes(value as HeaderDialect),
      says("a header dialect", `${HEADER_DIALECTS.map((name) => `"${name}"`).join(", ")} or false`),
    )
    .optional(),
  onStoreFailure: member.onStoreFailure.optional(),
  storeTimeoutMs: z
    .int(says("a time", TIMEOUT))
    .min(1, says("a time", TIMEOUT))
    .max(2_147_483_647, says("a time", TIMEOUT))
    .optional(),
  instances: z
    .int(says("a number of instances", POSITIVE))
    .min(1, says("a number of instances", POSITIVE))
    .optional(),
  enabled: z.boolean(says("a boolean", "true or false")).optional(),
  logger: z
    .custom<unknown>(
      has("warn", "error"),
      says("a logger", "an object with warn() and error(), such as pino's"),
    )
    .optional(),
  clock: z
    .custom<unknown>(
      isClock,
      says("a clock", "{ now(): epoch milliseconds, wait?(ms, signal) }, such as manualClock()"),
    )
    .optional(),
})

/**
 * Whether options say which rules there are: an inline one, be it whole or not, a list, a source, or a limiter that has some. What is
 * there and undefined says so as well: a limit that is lost on the way is no wish for none.
 */
export function hasRuleOption(options: object): boolean {
  return [...RULE_OPTIONS, "rules", "limiter"].some((name) => name in options)
}
