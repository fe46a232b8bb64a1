import { InvalidOptionError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { atOnce, inSlices, type Pausable } from "../../ground/slices.ts"
import { keepingAlive } from "../../ground/time.ts"
import type { Edition, ReadyOptions, RulesStatus } from "../../rules/live-rules.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import type { ParsedOptions } from "../options/parse-options.ts"
import { spareCapacityMonitor } from "../spare-capacity/monitor.ts"
import { LimiterReader, type RulesListener, type RulesOwner } from "./limiter-reader.ts"
import { claimNames, releaseNames, takenProblem } from "./name-claims.ts"
import { compileRuleSet, denyingRuleSet, type RuleSet } from "./rule-set.ts"

/**
 * Maximum number of rules that are compiled in one turn of the event loop, which takes one or two milliseconds. More
 * rules are compiled in slices.
 */
const MOST_AT_ONCE = 100

/** The status of rules in code, which never change. */
const UNCHANGING: RulesStatus = { ageMs: 0, isStale: false, isRejected: false, problems: [] }

/**
 * The rules of a limiter that are in force now: its inline rule, the rules of its list, or the latest version of its
 * live rules. Each route has its own instance with its own inline rule, and shares the other rules with the limiter.
 */
export class RulesInForce implements RulesOwner {
  readonly #options: ParsedOptions
  readonly #listener: RulesListener
  readonly #inline: ParsedRule | undefined
  /** Returns the rules of all routes. */
  readonly #routes: () => readonly RulesInForce[]
  /** The reader of live rules. Undefined for rules in code. Routes use the reader of the limiter. */
  readonly live: LimiterReader | undefined
  /** The compiled rules. */
  current: RuleSet
  /** Releases the lease on the monitor. Present only while a rule depends on the spare capacity of this process. */
  #unwatch: (() => void) | undefined

  /**
   * Throws InvalidOptionError if another limiter counts under one of the names, and ClosedError for a closed book.
   * For a local source with invalid rules, throws RuleSourceError or InvalidRuleError that describes the problem. For
   * a route, `limiter` contains the rules that the route shares.
   */
  constructor(
    options: ParsedOptions,
    listener: RulesListener,
    routes: () => readonly RulesInForce[],
    limiter?: RulesInForce,
    inline: ParsedRule | undefined = options.inline,
  ) {
    this.#options = options
    this.#listener = listener
    this.#inline = inline
    this.#routes = routes
    const { rules, untilLoaded, enabled } = options
    const live = limiter === undefined ? undefined : limiter.live
    const edition = live?.edition
    const isDenying = edition === undefined && untilLoaded.onRulesMissing === "deny"
    const shared = edition?.rules ?? (isList(rules) ? rules : untilLoaded.defaultRules)
    this.current = isDenying
      ? denyingRuleSet(listener.context)
      : atOnce(this.#compile(shared, edition?.metadata?.link))
    this.#claimOrThrow(limiter === undefined ? shared : [])
    this.live = live
    if (limiter === undefined && !isList(rules) && enabled) {
      try {
        this.live = new LimiterReader(options, listener, rules, this)
      } catch (error) {
        this.giveUp()
        throw error
      }
    }
    this.#watch()
  }

  get status(): RulesStatus {
    return this.live?.status ?? UNCHANGING
  }

  /** Returns the rules for a route, with the route's inline rule instead of the limiter's. */
  ofRoute(inline: ParsedRule): RulesInForce {
    return new RulesInForce(this.#options, this.#listener, () => [], this, inline)
  }

  /** Keeps the process alive until the returned promise has settled. */
  async ready(options: ReadyOptions): Promise<void> {
    if (this.live !== undefined) await keepingAlive(this.live.ready(options))
  }

  async refresh(options: Pick<ReadyOptions, "signal">): Promise<void> {
    await this.live?.refresh(options)
  }

  close(): void {
    this.live?.close()
    for (const each of [this, ...this.#routes()]) each.giveUp()
  }

  /** Releases the rule names and the lease on the monitor. For a route, called when its last mount has left. */
  giveUp(): void {
    releaseNames(this.#options.store, this)
    this.#listener.follow(this, [])
    this.#unwatch?.()
    this.#unwatch = undefined
  }

  compileAll({ rules, metadata }: Edition, isNeededNow: boolean): MaybePromise<() => void> {
    const steps = this.#compileAllPausably(rules, metadata?.link)
    const count = rules.length * (1 + this.#routes().length)
    return isNeededNow || count <= MOST_AT_ONCE ? atOnce(steps) : inSlices(steps)
  }

  /** Compiles the shared rules and the inline rule. */
  #compile(shared: readonly ParsedRule[], link: string | undefined): Pausable<RuleSet> {
    const rules = this.#inline === undefined ? shared : [this.#inline, ...shared]
    return compileRuleSet(rules, this.#listener.context, link)
  }

  /**
   * Compiles the shared rules for the limiter and for each of its routes. Returns a function that brings them into
   * force.
   */
  *#compileAllPausably(shared: readonly ParsedRule[], link: string | undefined): Pausable<() => void> {
    const sets = new Map<RulesInForce, RuleSet>()
    for (const each of [this, ...this.#routes()]) sets.set(each, yield* each.#compile(shared, link))
    return () => {
      for (const each of [this, ...this.#routes()]) {
        // A route may have been added while the rules were compiled.
        each.current = sets.get(each) ?? atOnce(each.#compile(shared, link))
        each.#watch()
      }
    }
  }

  #watch(): void {
    this.#listener.follow(this, this.current.rules)
    if (this.current.needsMonitor && this.#options.enabled) this.#unwatch ??= spareCapacityMonitor.lease()
    else {
      this.#unwatch?.()
      this.#unwatch = undefined
    }
  }

  #claimOrThrow(shared: readonly ParsedRule[]): void {
    const { store, service, enabled } = this.#options
    // A disabled limiter counts nothing, so its names stay free for another limiter.
    if (!enabled) return
    const rules = this.#inline === undefined ? shared : [this.#inline, ...shared]
    const names = rules.map(({ name }) => name)
    const [taken] = claimNames(store, service, names, this)
    if (taken !== undefined) throw new InvalidOptionError([takenProblem(service, taken)])
  }
}

// Array.isArray does not narrow a readonly list.
function isList(rules: ParsedOptions["rules"]): rules is readonly ParsedRule[] {
  return Array.isArray(rules)
}
