import { waitUnheld } from "../clock.ts"
import { InvalidOptionError, InvalidRuleError, type Problem } from "../errors.ts"
import type { ParsedRule } from "../rules/parsed-rule.ts"
import { show } from "../rules/problems.ts"
import { type Edition, type RuleBook, ruleBook } from "../rules/rule-book.ts"
import type { RuleSource } from "../rules/source.ts"
import { claimNames, releaseNames } from "./claims.ts"
import type { LimiterParts } from "./limiter-parts.ts"
import type { ParsedOptions } from "./options.ts"
import { compileRuleSet, type RuleSet } from "./rule-set.ts"

/** How long a request waits for the first rules: longer, and a source that hangs would be an outage of the app. */
const MOST_WAIT_FOR_RULES_MS = 1_000

/**
 * The rules of a limiter that are in force now: its inline rule, those of its list, or the latest of its source; and
 * with them those of the limiters of its routes, which have an inline rule of their own and share the others.
 */
export class RulesInForce<Request> {
  readonly #options: ParsedOptions
  readonly #parts: LimiterParts<Request>
  readonly #inline: ParsedRule | undefined
  /** Whose list or source it is: a route's is its limiter's. */
  readonly #root: RulesInForce<Request>
  readonly #routes: RulesInForce<Request>[] = []
  #shared: readonly ParsedRule[]
  #current: RuleSet
  /** Only where rules come from a source. */
  #book: RuleBook | undefined
  /** Settles when the first rules are there, or cannot be had in time; undefined from then on. */
  #first: Promise<void> | undefined

  /** Throws InvalidOptionError when another limiter counts under one of the names. */
  constructor(
    options: ParsedOptions,
    parts: LimiterParts<Request>,
    root?: RulesInForce<Request>,
    inline: ParsedRule | undefined = options.inline,
  ) {
    this.#options = options
    this.#parts = parts
    this.#inline = inline
    this.#root = root ?? this
    const { rules } = options
    const listed = isList(rules) ? rules : []
    this.#shared = root === undefined ? listed : root.#shared
    this.#current = this.#compile()
    this.#claimOrThrow()
    if (root !== undefined) root.#routes.push(this)
    else if (!isList(rules)) this.#openBook(rules)
  }

  get current(): RuleSet {
    return this.#current
  }

  /** What a decision has to wait for. */
  get first(): Promise<void> | undefined {
    return this.#root.#first
  }

  /** The rules with another inline one. */
  ofRoute(inline: ParsedRule): RulesInForce<Request> {
    return new RulesInForce(this.#options, this.#parts, this.#root, inline)
  }

  async ready(options: { readonly signal?: AbortSignal | undefined }): Promise<void> {
    await this.#root.#book?.ready(options)
  }

  close(): void {
    for (const rules of [this, ...this.#routes]) releaseNames(this.#options.store, rules)
    this.#book?.close()
  }

  #compile(): RuleSet {
    const rules = this.#inline === undefined ? this.#shared : [this.#inline, ...this.#shared]
    return compileRuleSet(rules, this.#parts.context, this.#options.headers)
  }

  #claimOrThrow(): void {
    const { store, service } = this.#options
    const [taken] = claimNames(store, service, this.#ownNames(), this)
    if (taken === undefined) return
    throw new InvalidOptionError([this.#takenProblem(taken)])
  }

  #ownNames(): readonly string[] {
    const shared = this.#root === this ? this.#shared.map(({ name }) => name) : []
    return this.#inline === undefined ? shared : [this.#inline.name, ...shared]
  }

  #takenProblem(name: string): Problem {
    const message = `another limiter counts rule ${show(name)} of service ${show(this.#options.service)} on this store`
    const accepted = "a name or service of its own, or one limiter for both mounts: rateLimit({ limiter })"
    return { path: "name", message, accepted }
  }

  #openBook(source: RuleSource): void {
    const { clock, service } = this.#options
    const { warner, events } = this.#parts
    const wait = clock.wait === undefined ? waitUnheld : clock.wait.bind(clock)
    this.#book = ruleBook({
      source,
      service,
      wait,
      onLoaded: (edition) => this.#turnTo(edition),
      onError: (error) => {
        const inForce =
          this.#book?.current === undefined
            ? "None of its rules are in force until this is mended."
            : "The last good rules stay in force."
        warner.say("error", "SLUICE_RULES_REJECTED", `${this.#where()}: ${error.message}\n${inForce}`, error)
        events.emit("rule-error", error)
      },
    })
    const stopWaiting = new AbortController()
    const done = () => {
      this.#first = undefined
      stopWaiting.abort()
    }
    const tooLong = wait(MOST_WAIT_FOR_RULES_MS, stopWaiting.signal)
    this.#first = Promise.race([this.#book.ready(), tooLong]).then(done, done)
  }

  /**
   * Another edition comes into force at once, for the routes too; decisions in flight finish on the one before. Throws
   * InvalidRuleError, and changes nothing, when another limiter counts under one of its names.
   */
  #turnTo({ rules, problems, version }: Edition): void {
    const { store, service } = this.#options
    const names = rules.map(({ name }) => name)
    const taken = claimNames(store, service, names, this)
    if (taken.length > 0) throw new InvalidRuleError(taken.map((name) => this.#takenProblem(name)))
    const lost = this.#shared.map(({ name }) => name).filter((name) => !names.includes(name))
    for (const each of [this, ...this.#routes]) {
      each.#shared = rules
      each.#current = each.#compile()
    }
    const { warner, events } = this.#parts
    if (problems.length > 0) {
      const error = new InvalidRuleError(problems)
      const gone =
        lost.length === 0 ? "" : ` No longer in force: ${lost.map((name) => show(name)).join(", ")}.`
      const message = `${this.#where()}: ${error.message}\nThese rules are set aside; the others are in force.${gone}`
      warner.say("error", "SLUICE_RULES_REJECTED", message, error)
    }
    events.emit("rules", { names, problems, ...(version === undefined ? {} : { version }) })
  }

  #where(): string {
    const { rules, service } = this.#options
    return `${(isList(rules) ? undefined : rules.name) ?? "the rule source"}, service ${show(service)}`
  }
}

// Array.isArray does not narrow a readonly list.
function isList(rules: ParsedOptions["rules"]): rules is readonly ParsedRule[] {
  return Array.isArray(rules)
}
