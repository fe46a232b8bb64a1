import { z } from "zod"
import { type Clock, soundTime, steadyClock } from "../clock.ts"
import { InvalidOptionError, type Problem } from "../errors.ts"
import type { Decision } from "../limiter/decision.ts"
import type { OnStoreFailure } from "../policy.ts"
import { OpenBook } from "../rules/open-book.ts"
import { parseRule, parseRules, RULE_MEMBERS } from "../rules/parse-rule.ts"
import type { ParsedRule } from "../rules/parsed-rule.ts"
import { classOf, locate, says, show } from "../rules/problems.ts"
import type { Rule } from "../rules/rule.ts"
import type { RuleBook } from "../rules/rule-book.ts"
import { member, readShape, strict } from "../rules/rule-members.ts"
import type { RuleSource } from "../rules/source.ts"
import { memoryStore } from "../stores/memory/memory-store.ts"
import type { MaybePromise, Store } from "../stores/store.ts"
import type { Logger } from "../warnings.ts"
import { isUnits } from "./callbacks.ts"
import { type ClientAddressOptions, clientAddressProblems } from "./client-address-options.ts"
import { isBuiltInField } from "./field.ts"
import { inOurNames } from "./foreign-names.ts"
import { HEADER_DIALECTS, type HeaderDialect } from "./headers.ts"
import type { Rejection } from "./rejection.ts"

/** A field of the app's own, by name: a user id or a plan from its authentication. Undefined is missing. */
export type Extractor<Request> = (request: Request) => string | number | undefined

/**
 * Takes over the answer to a refused request. It gets the framework's own request (Koa: the context), the answer that
 * would be sent, its decision, and the framework's own response (Koa: the context again; Fastify: the reply).
 *
 * What it returns is sent instead; when it returns nothing and has not answered by itself, the standard answer is.
 * `false` says that it answers by itself, now or later: nothing is sent. Rate limit headers and `Retry-After` have been
 * set by then.
 */
export type OnRejected<Request> = (
  request: Request,
  rejection: Rejection,
  decision: Decision,
  response: unknown,
) => // Not `false`: TypeScript takes an async function that returns it for one that yields a boolean.
Rejection | boolean | undefined | PromiseLike<Rejection | boolean | undefined> | MaybePromise<void>

/** Every member of a rule but its cost, which a limiter reads differently; none is required here. */
export type InlineRule<Request> = {
  // Mapped from an object type, so that each member keeps the docstring that it has in Rule.
  readonly [Name in keyof Omit<Rule<Request>, "cost">]?: Omit<Rule<Request>, "cost">[Name] | undefined
}

/** What a limiter is made of. Either one inline rule (`limit`, `window` and any other member of {@link Rule}), or `rules`. */
export interface LimiterOptions<Request> extends InlineRule<Request>, ClientAddressOptions {
  /** Several rules, or where they come from: a source, or a book of one that several limiters share. */
  readonly rules?: readonly Rule<Request>[] | RuleSource | RuleBook | undefined
  /** Rules in force until those of the source are loaded for the first time: default none, which admits everything. */
  readonly defaultRules?: readonly Rule<Request>[] | undefined
  /** Whose rules and counters: default "default". */
  readonly service?: string | number | undefined
  /** Where counters are: default a memory store of its own. It stays its maker's, who closes it. */
  readonly store?: Store | undefined
  /**
   * Fields of the app's own by name; or, where the names are not known beforehand, a function that yields what reads a
   * name, undefined for none. It is asked when rules are compiled, not for each request. Default: none.
   */
  readonly fields?:
    | Readonly<Record<string, Extractor<Request>>>
    | ((name: string) => Extractor<Request> | undefined)
    | undefined
  /** Units that a request takes, times each rule's own cost: a whole number from 0 up, or a function. Default 1. */
  readonly cost?: number | ((request: Request) => number) | undefined
  /** Whether a request is not counted at all: default no. One that throws, or yields no boolean, is counted. */
  readonly skip?: ((request: Request) => boolean) | undefined
  /** Takes over the answer to a refused request: default a problem (RFC 9457) in JSON, or lines of text. */
  readonly onRejected?: OnRejected<Request> | undefined
  /**
   * Whether a request's units are given back once its response is known: `(req, status) => status < 400` for "only
   * failures count". They are charged first, so parallel guesses cannot slip through. Default: never.
   */
  readonly refundWhen?: ((request: Request, status: number) => boolean) | undefined
  /** How an adapter writes the limits into response headers, false not at all: default "draft-11". */
  readonly headers?: HeaderDialect | false | undefined
  /** What rules without their own do when the store is gone: default "local". */
  readonly onStoreFailure?: OnStoreFailure | undefined
  /** Milliseconds after which a silent store counts as gone: default 50. */
  readonly storeTimeoutMs?: number | undefined
  /** Instances that share the store and its limits: default 1. Only for what is decided while the store is gone. */
  readonly instances?: number | undefined
  /** false admits everything uncounted, for tests of the app: default true. */
  readonly enabled?: boolean | undefined
  /** Where warnings go, pino or the like: default `process.emitWarning`. */
  readonly logger?: Logger | undefined
  /**
   * What time is measured by, for tests: default the process's steady time. It is the memory store's clock too, when the
   * limiter makes that.
   */
  readonly clock?: Clock | undefined
}

/** The options, checked, with every default filled in. */
export interface ParsedOptions {
  /** Undefined with `rules`. */
  readonly inline: ParsedRule | undefined
  readonly rules: readonly ParsedRule[] | RuleSource | OpenBook
  /** In force until rules of the source are loaded. */
  readonly defaultRules: readonly ParsedRule[]
  readonly service: string
  readonly store: Store
  readonly ownsStore: boolean
  readonly clientAddress: ClientAddressOptions
  /** What reads a field of the app's own; undefined where it has none of that name. */
  readonly extractorOf: (name: string) => ((request: unknown) => unknown) | undefined
  readonly cost: number | ((request: unknown) => unknown)
  readonly skip: ((request: unknown) => unknown) | undefined
  readonly onRejected: OnRejected<unknown> | undefined
  readonly refundWhen: ((request: unknown, status: number) => unknown) | undefined
  readonly headers: HeaderDialect | false
  readonly onStoreFailure: OnStoreFailure
  readonly storeTimeoutMs: number
  readonly instances: number
  readonly enabled: boolean
  readonly logger: Logger | undefined
  readonly clock: Clock
  /** What a header calls the present: a steady clock does not follow when the system's time is corrected. */
  readonly wallClock: () => number
}

function attempt<T>(action: () => T): { readonly value: T } | { readonly error: unknown } {
  try {
    return { value: action() }
  } catch (error) {
    return { error }
  }
}

const isFunction = (value: unknown): boolean => typeof value === "function"
const functionLike = (noun: string, accepted: string) =>
  z.custom<unknown>(isFunction, says(noun, accepted)).optional()
const has =
  (...methods: string[]) =>
  (value: unknown): boolean =>
    // Functions may have methods too: Date is a clock.
    methods.every((name) => isFunction((value as Record<string, unknown> | null | undefined)?.[name]))

const isClock = (value: unknown): boolean =>
  has("now")(value) && ((value as Clock).wait === undefined || has("wait")(value))

/** A client of Redis, by what those of all libraries have, or the URL of one. */
const isRedis = (value: unknown): boolean =>
  has("duplicate")(value) || (typeof value === "string" && /^rediss?:/.test(value))

const STORE = "memoryStore(), redisStore({ client }) or another Store"
const REDIS_STORE = "redisStore({ client }), of @sluice/core/redis, with a client of ioredis or node-redis"
const COST = says("a cost", "a whole number from 0 up, or a function that yields one for a request")
const SERVICE = says("a service", "a non-empty text or a number")
const TIMEOUT = "milliseconds from 1 to 2147483647"
const POSITIVE = "a whole number from 1 up"

const RULE_OPTIONS = RULE_MEMBERS.filter((name) => name !== "cost" && name !== "onStoreFailure")

const shape = strict("the options", {
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
  service: z.union([z.string(SERVICE).min(1, SERVICE), z.number(SERVICE)], SERVICE).optional(),
  store: z
    .custom<unknown>(has("take", "peek", "giveBack", "reset", "close"), {
      error: ({ input }) => {
        if (!isRedis(input)) return says("a store", STORE).error
        return says(`a store but ${typeof input === "string" ? "a URL" : "a Redis client"}`, REDIS_STORE)
          .error
      },
    })
    .optional(),
  trustedProxies: z.unknown().optional(),
  clientIpHeader: z.unknown().optional(),
  ipv6Prefix: z.unknown().optional(),
  // A function is taken as it is.
  fields: z.preprocess(
    (value) => (isFunction(value) ? undefined : value),
    z
      .record(
        z
          .string()
          .refine(
            (name) => !isBuiltInField(name),
            says("a field's name", "a name that no built-in field has"),
          ),
        z.custom<unknown>(isFunction, says("a function", "(request) => text or number")),
        says("an object of functions", '{ "user_id": (request) => … }'),
      )
      .optional(),
  ),
  cost: z.custom<unknown>((value) => isUnits(value) || isFunction(value), COST).optional(),
  skip: functionLike("a function", "(request) => boolean"),
  onRejected: functionLike(
    "a function",
    "(request, rejection, decision, response) => rejection, false or nothing",
  ),
  refundWhen: functionLike("a function", "(request, status) => boolean"),
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

/** The options with their defaults. Throws {@link InvalidOptionError} with everything that is wrong with them. */
export function parseOptions(value: unknown): ParsedOptions {
  if (isForeign(value)) throw new InvalidOptionError([notOptions(value)])
  const { good, problems: found } = readShape(shape, value)
  const problems: Problem[] = found.map((problem) => locate("", problem))
  // All else would be missing too.
  if (problems.some(({ path }) => path === "")) throw new InvalidOptionError(problems)
  const options = good as LimiterOptions<unknown>
  problems.push(...clientAddressProblems(options))
  const rules = parseOptionRules(options, problems)
  if (problems.length > 0) throw new InvalidOptionError(inOurNames(problems, "options"))
  const { trustedProxies, clientIpHeader, ipv6Prefix, clock = steadyClock } = options
  return {
    ...rules,
    service: String(options.service ?? "default"),
    store: options.store ?? memoryStore({ clock }),
    ownsStore: options.store === undefined,
    clientAddress: { trustedProxies, clientIpHeader, ipv6Prefix },
    extractorOf: extractors(options.fields),
    cost: options.cost ?? 1,
    skip: options.skip,
    onRejected: options.onRejected,
    refundWhen: options.refundWhen,
    headers: options.headers ?? "draft-11",
    onStoreFailure: options.onStoreFailure ?? "local",
    storeTimeoutMs: options.storeTimeoutMs ?? 50,
    instances: options.instances ?? 1,
    enabled: options.enabled ?? true,
    logger: options.logger,
    clock,
    wallClock: options.clock === undefined ? Date.now : () => soundTime(clock),
  }
}

/** Nothing, or somebody else's object, such as the request that a middleware is given which nobody has called. */
function isForeign(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return value === undefined
  const prototype: unknown = Object.getPrototypeOf(value)
  // An app may well have a class of options of its own.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null || Array.isArray(value)
  return !isPlain && !["limit", "window", "rules"].some((name) => name in value)
}

function notOptions(value: unknown): Problem {
  const accepted = 'an object such as { limit: 100, window: "1 minute" }'
  if (value === undefined) return { path: "", message: "there are none", accepted }
  const hint = "; what is mounted is what rateLimit(options) yields, not rateLimit itself"
  // Not as JSON: it may be a request, whose headers have no place in a log.
  return {
    path: "",
    message: `${classOf(value) ?? "an object"} is not the options`,
    accepted: `${accepted}${hint}`,
  }
}

function extractors(fields: LimiterOptions<unknown>["fields"] = {}): ParsedOptions["extractorOf"] {
  if (typeof fields !== "function") return (name) => (Object.hasOwn(fields, name) ? fields[name] : undefined)
  return (name) => {
    const made = attempt(() => fields(name))
    if ("value" in made && (made.value === undefined || isFunction(made.value))) return made.value
    // Rules are compiled where nobody could catch it; as a field that cannot be read it is told, and counts as missing.
    return () => {
      throw "error" in made ? made.error : new TypeError(`"fields" yielded no function for "${name}"`)
    }
  }
}

/** An inline rule by itself: a limiter's own, or one of a route. Its field defaults to "ip". */
export function parseInlineRule(
  value: object,
  defaultName?: string,
): {
  readonly rule?: ParsedRule
  readonly problems: readonly Problem[]
} {
  // What is given as undefined is not given.
  const { field = "ip", name = defaultName } = value as { readonly field?: unknown; readonly name?: unknown }
  const { problems, ...parsed } = parseRule({ ...value, field, name }, "")
  return { ...parsed, problems: inOurNames(problems, "rule") }
}

function parseOptionRules(
  options: LimiterOptions<unknown>,
  problems: Problem[],
): Pick<ParsedOptions, "inline" | "rules" | "defaultRules"> {
  const defaultRules = parseDefaultRules(options, problems)
  const given = RULE_OPTIONS.filter((name) => options[name as keyof typeof options] !== undefined)
  // Rules that are wrong are rules nevertheless: an inline one is not missing.
  const hasRules = options.rules !== undefined || problems.some(({ path }) => path === "rules")
  if (!hasRules) {
    const { rule, problems: wrong } = parseInlineRule(
      Object.fromEntries(given.map((name) => [name, options[name as keyof typeof options]])),
    )
    problems.push(...wrong)
    return { inline: rule, rules: [], defaultRules }
  }
  for (const name of given) {
    const accepted = `"${name}" as a member of a rule in "rules", or an inline rule without "rules"`
    problems.push({ path: name, message: 'is given together with "rules"', accepted })
  }
  // Or undefined, where a problem has been told of them.
  if (!Array.isArray(options.rules)) {
    return { inline: undefined, rules: options.rules as RuleSource | OpenBook, defaultRules }
  }
  const parsed = parseRules(options.rules, "rules")
  problems.push(...parsed.problems)
  return { inline: undefined, rules: parsed.rules, defaultRules }
}

function parseDefaultRules(
  { rules, defaultRules }: LimiterOptions<unknown>,
  problems: Problem[],
): readonly ParsedRule[] {
  if (defaultRules === undefined) return []
  if (rules === undefined || Array.isArray(rules)) {
    const message = "is given without a rule source, whose rules they would stand in for"
    problems.push({ path: "defaultRules", message, accepted: 'a source as "rules", or no defaultRules' })
  }
  const parsed = parseRules(defaultRules, "defaultRules")
  problems.push(...parsed.problems)
  return parsed.rules
}
