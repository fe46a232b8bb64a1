import * as v from "valibot"
import { type Clock, soundTime, steadyClock, waitUnheld } from "../../ground/clock.ts"
import { InvalidOptionError, type Problem } from "../../ground/errors.ts"
import { integer, readShape, says, strict } from "../../ground/shape.ts"
import { locate } from "../../ground/show.ts"
import type { Logger } from "../../ground/warnings.ts"
import type { Rule } from "../rule.ts"
import type { RuleSource } from "../source.ts"
import type { Timing } from "./timing.ts"
import { type OnRulesMissing, onRulesMissing, parseUntilLoaded, type UntilLoaded } from "./until-loaded.ts"

/** Options of `createRuleBook`. */
export interface RuleBookOptions {
  /** Where the rules are: `fileRules(…)`, `dynamoDBRules(…)` or another. It stays its maker's, who closes it. */
  readonly source: RuleSource
  /**
   * Which services are loaded: "asked", the default, those that a limiter was made for, each by itself; "all" that the
   * source can list, which suits a process that decides for many.
   */
  readonly services?: "asked" | "all" | undefined
  /**
   * Rules that apply in the limiters of this book until theirs are loaded for the first time. A limiter's own choice wins. With
   * a network source a limiter needs this or `onRulesMissing`, of the book or its own.
   */
  readonly defaultRules?: readonly Rule[] | undefined
  /**
   * What becomes of requests until the rules of a limiter of this book are loaded for the first time: "allow" or "deny", as in
   * the options of a limiter.
   */
  readonly onRulesMissing?: OnRulesMissing | undefined
  /** Milliseconds between loads: default what the source says, else no polling, as it tells of changes by itself. */
  readonly pollMs?: number | undefined
  /** When rules that cannot be loaded any more are said to be stale: default three poll intervals, or 90,000. */
  readonly staleAfterMs?: number | undefined
  /** Names that were asked for and are not followed, which are remembered: default 10,000. */
  readonly maxUnknown?: number | undefined
  /** Where warnings go, pino or the like: default `process.emitWarning`. */
  readonly logger?: Logger | undefined
  /** What intervals and ages are measured by, for tests: default the process's steady time. */
  readonly clock?: Clock | undefined
  /** For tests: a number from 0 to below 1. Default Math.random. */
  readonly random?: (() => number) | undefined
}

/** Lists the rules of every service, like `loadAll` of a source. */
export type ListAll = NonNullable<RuleSource["loadAll"]>

/** Loads the rules of one service synchronously, like `loadSync` of a source. */
export type LoadSync = NonNullable<RuleSource["loadSync"]>

/** The options, checked, with every default filled in. */
export interface ParsedBookOptions {
  readonly source: RuleSource
  readonly name: string
  /** Absent: services are loaded by their names. */
  readonly listAll: ListAll | undefined
  /** Absent: the source is a network source. */
  readonly loadSync: LoadSync | undefined
  /** What applies in limiters until the first load; undefined if the book does not say. */
  readonly untilLoaded: UntilLoaded | undefined
  /** Undefined: the source tells of every change. */
  readonly pollMs: number | undefined
  /** How long an answer for a name that nobody follows is taken for granted. */
  readonly rememberMs: number
  readonly staleAfterMs: number
  readonly maxUnknown: number
  readonly logger: Logger | undefined
  readonly timing: Timing
}

/** The interval of a source that is not polled, for names that nobody follows and for what counts as stale. */
const DEFAULT_POLL_MS = 30_000

/** The longest delay of a timer: beyond it, it would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1
const INTERVAL_ACCEPTED = `a whole number of milliseconds from 1 to ${MAX_TIMER_MS}`
const INTERVAL = says("an interval", INTERVAL_ACCEPTED)
const NAMES = says("a number of names", "a whole number from 1 up")
const SOURCE = says("a rule source", "fileRules(…), staticRules(…) or another RuleSource")
const interval = v.optional(integer(INTERVAL, 1, MAX_TIMER_MS))
const withMethods =
  (...methods: string[]) =>
  (value: unknown): boolean =>
    // Functions may have methods too: Date is a clock.
    ((typeof value === "object" && value !== null) || typeof value === "function") &&
    methods.every((name) => typeof (value as Record<string, unknown>)[name] === "function")

const shape = strict("the options of a rule book", {
  source: v.custom(withMethods("load"), SOURCE),
  services: v.optional(v.picklist(["asked", "all"], says("a choice of services", '"asked" or "all"'))),
  defaultRules: v.optional(v.unknown()),
  onRulesMissing,
  pollMs: interval,
  staleAfterMs: interval,
  maxUnknown: v.optional(integer(NAMES, 1)),
  logger: v.optional(
    v.custom(
      withMethods("warn", "error"),
      says("a logger", "an object with warn() and error(), such as pino's"),
    ),
  ),
  clock: v.optional(
    v.custom(withMethods("now"), says("a clock", "{ now(): epoch milliseconds, wait?(ms, signal) }")),
  ),
  random: v.optional(
    v.custom((value) => typeof value === "function", says("a function", "() => 0 to below 1")),
  ),
})

/** The options with their defaults. Throws {@link InvalidOptionError} with everything that is wrong with them. */
export function parseBookOptions(value: unknown): ParsedBookOptions {
  const { good, bad, problems: found } = readShape(shape, value)
  const problems: Problem[] = found.map((problem) => locate("", problem))
  const options = good as unknown as RuleBookOptions
  const { source, services = "asked", clock = steadyClock } = options
  if (source !== undefined && !bad.has("source")) problems.push(...sourceProblems(source, services))
  const untilLoaded = parseUntilLoaded(options, problems)
  if (problems.length > 0) throw new InvalidOptionError(problems)
  const pollMs = options.pollMs ?? source.pollMs
  const rememberMs = pollMs ?? DEFAULT_POLL_MS
  return {
    source,
    name: source.name ?? "the rule source",
    loadSync: source.loadSync?.bind(source),
    listAll: services === "all" ? (each) => (source as Required<RuleSource>).loadAll(each) : undefined,
    untilLoaded,
    pollMs,
    rememberMs,
    staleAfterMs: options.staleAfterMs ?? Math.min(3 * rememberMs, MAX_TIMER_MS),
    maxUnknown: options.maxUnknown ?? 10_000,
    logger: options.logger,
    timing: {
      now: () => soundTime(clock),
      wait: clock.wait === undefined ? waitUnheld : clock.wait.bind(clock),
      random: options.random ?? Math.random,
    },
  }
}

function sourceProblems(source: RuleSource, services: string): Problem[] {
  const problems: Problem[] = []
  if (!v.is(interval, source.pollMs)) {
    problems.push({
      path: "source.pollMs",
      message: `${source.pollMs} is not an interval`,
      accepted: INTERVAL_ACCEPTED,
    })
  }
  if (services === "all" && typeof source.loadAll !== "function") {
    const message = `"all" is given, and ${source.name ?? "the rule source"} cannot list its services`
    problems.push({ path: "services", message, accepted: '"asked", or a source with loadAll()' })
  }
  return problems
}
