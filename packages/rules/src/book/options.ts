import type { Clock, Logger, OnRulesMissing, Problem, Rule } from "@sluice/core"
import {
  clockOption,
  interval,
  LONGEST_TIMER_MS,
  loggerOption,
  mustBe,
  type OptionCheck,
  problemAt,
  requireOptions,
  soundTime,
  steadyClock,
  waitOf,
  wholeNumber,
} from "@sluice/core/kit"
import { parseUntilLoaded, type UntilLoaded } from "@sluice/core/rules"
import type { RuleSource } from "../source.ts"
import type { Timing } from "./timing.ts"

/** Options of `createRuleBook`. */
export interface RuleBookOptions {
  /**
   * Where the rules come from: `fileRules(…)`, `dynamoDBRules(…)` or another source. The code that created the source
   * closes it.
   */
  readonly source: RuleSource
  /**
   * The services to load. "asked", the default, loads each service by name when a limiter is created for it. "all"
   * loads every service that the source can list, which suits a process that decides requests of many services.
   */
  readonly services?: "asked" | "all" | undefined
  /**
   * Rules that apply in the limiters of this book until their own rules are loaded for the first time. A limiter's
   * own option takes precedence. With a network source, the book or the limiter must set this or `onRulesMissing`.
   */
  readonly defaultRules?: readonly Rule[] | undefined
  /**
   * How requests are decided until the rules of a limiter of this book are loaded for the first time: "allow" or
   * "deny". Works like the limiter option of the same name.
   */
  readonly onRulesMissing?: OnRulesMissing | undefined
  /**
   * Milliseconds between loads. Default: the source's own interval. A source without an interval reports its changes
   * and is not polled.
   */
  readonly pollMs?: number | undefined
  /**
   * Milliseconds after which rules that cannot be reloaded are reported as stale. Default: three poll intervals, or
   * 90,000.
   */
  readonly staleAfterMs?: number | undefined
  /** Maximum number of remembered names that were looked up but are not followed. Default: 10,000. */
  readonly maxUnknown?: number | undefined
  /** Receives warnings; pino or a similar logger. Default: `process.emitWarning`. */
  readonly logger?: Logger | undefined
  /** Clock for intervals and ages, for tests. Default: the monotonic clock of the process. */
  readonly clock?: Clock | undefined
  /** Returns a number from 0 to below 1, for tests. Default: Math.random. */
  readonly random?: (() => number) | undefined
}

/** The checked options, including all defaults. */
export interface ParsedBookOptions {
  readonly source: RuleSource
  readonly name: string
  /** True if all services are loaded as one list. False if services are loaded by name. */
  readonly isListed: boolean
  /** The rules or the decision that limiters apply until the first load. Undefined if the options define neither. */
  readonly untilLoaded: UntilLoaded | undefined
  /** Undefined if the source reports every change. */
  readonly pollMs: number | undefined
  /** Milliseconds for which the rules of an unfollowed name are not loaded again. */
  readonly rememberMs: number
  readonly staleAfterMs: number
  readonly maxUnknown: number
  readonly logger: Logger | undefined
  readonly timing: Timing
}

/** The interval for unfollowed names and for staleness if the source is not polled. */
const DEFAULT_POLL_MS = 30_000

/** Whether a value can be a rule source. */
export function isSource(value: unknown): value is RuleSource {
  return typeof (value as Partial<RuleSource> | null | undefined)?.load === "function"
}

const oneOf = (accepted: string, ...values: readonly string[]): OptionCheck =>
  mustBe("a valid value", accepted, (value) => values.includes(value as string))
const SOURCE = mustBe("a rule source", "fileRules(…), staticRules(…) or another RuleSource", isSource)

const CHECKS: Readonly<Record<string, OptionCheck>> = {
  source: SOURCE,
  services: oneOf('"asked" or "all"', "asked", "all"),
  // `defaultRules` are checked when they are parsed.
  defaultRules: () => undefined,
  onRulesMissing: oneOf('"allow" or "deny"', "allow", "deny"),
  pollMs: interval,
  staleAfterMs: interval,
  maxUnknown: wholeNumber("number of names", "names"),
  logger: loggerOption,
  clock: clockOption,
  random: mustBe(
    "a function",
    "a function that returns a number from 0 to below 1, such as Math.random",
    (value) => typeof value === "function",
  ),
}

/** Returns the options with their defaults. Throws {@link InvalidOptionError} with every problem. */
export function parseBookOptions(options: RuleBookOptions): ParsedBookOptions {
  const { source, services = "asked", clock = steadyClock } = (options ?? {}) as RuleBookOptions
  const others: Problem[] = source === undefined ? problemAt("source", source, SOURCE) : []
  if (isSource(source)) others.push(...sourceProblems(source, services))
  const untilLoaded = parseUntilLoaded((options ?? {}) as RuleBookOptions, others)
  requireOptions("createRuleBook()", options, CHECKS, others)
  const pollMs = options.pollMs ?? source.pollMs
  const rememberMs = pollMs ?? DEFAULT_POLL_MS
  return {
    source,
    name: source.name ?? "the rule source",
    isListed: services === "all",
    untilLoaded,
    pollMs,
    rememberMs,
    staleAfterMs: options.staleAfterMs ?? Math.min(3 * rememberMs, LONGEST_TIMER_MS),
    maxUnknown: options.maxUnknown ?? 10_000,
    logger: options.logger,
    timing: {
      now: () => soundTime(clock),
      wait: waitOf(clock),
      random: options.random ?? Math.random,
    },
  }
}

function sourceProblems(source: RuleSource, services: string): Problem[] {
  const problems = source.pollMs === undefined ? [] : problemAt("source.pollMs", source.pollMs, interval)
  if (services === "all" && typeof source.loadAll !== "function") {
    const message = `"all" cannot be used, because ${source.name ?? "the rule source"} cannot list its services`
    problems.push({ path: "services", message, accepted: '"asked", or a source with loadAll()' })
  }
  return problems
}
