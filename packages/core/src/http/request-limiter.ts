import { ClosedError, InvalidOptionError, InvalidRuleError } from "../errors.ts"
import type { Ask } from "../limiter/ask.ts"
import type { Decision } from "../limiter/decision.ts"
import { UNLIMITED } from "../limiter/decision-record.ts"
import { RateLimitExceededError } from "../limiter/rate-limit-exceeded.ts"
import type { ParsedRule } from "../rules/parsed-rule.ts"
import { type Edition, type RuleBook, ruleBook } from "../rules/rule-book.ts"
import type { RuleSource } from "../rules/source.ts"
import type { EvictionEvent, MaybePromise } from "../stores/store.ts"
import { compileSkip, compileUnits, isUnits } from "./callbacks.ts"
import { claimNames, releaseNames } from "./claims.ts"
import type { CostOption, Limiter, LimiterEvents } from "./limiter.ts"
import { createParts, type LimiterParts } from "./limiter-parts.ts"
import { type LimiterOptions, type ParsedOptions, parseInlineRule, parseOptions } from "./options.ts"
import type { RequestFacts } from "./request.ts"
import { compileRuleSet, type RuleSet } from "./rule-set.ts"
import type { Warner } from "./warnings.ts"

/**
 * A limiter: `createLimiter({ limit: 100, window: "1 minute" })`.
 * @throws InvalidOptionError with everything that is wrong with the options.
 */
export function createLimiter<Request = RequestFacts>(options: LimiterOptions<Request>): Limiter<Request> {
  return new RequestLimiter<Request>(parseOptions(options))
}

/** How long a request waits for the first rules: longer, and a source that hangs would be an outage of the app. */
const MOST_WAIT_FOR_RULES_MS = 1_000

/** The limiter behind the interface, with what a guard needs of it besides. */
export class RequestLimiter<Request> implements Limiter<Request> {
  readonly options: ParsedOptions
  /** The present, for headers that name an instant. */
  readonly wallClock: () => number
  readonly #parts: LimiterParts<Request>
  readonly #unitsOf: (request: Request) => number
  readonly #skips: (request: Request) => boolean
  readonly #routes: RequestLimiter<Request>[] = []
  readonly #unsubscribe: (() => void) | undefined
  #ruleSet: RuleSet
  /** Only where rules come from a source. */
  #book: RuleBook | undefined
  /** Settles when the first rules are there, or cannot be had in time; undefined from then on. */
  #firstRules: Promise<void> | undefined
  #closed = false

  /** With `parent`, a limiter of one route: its own inline rule, everything else the parent's. */
  constructor(options: ParsedOptions, parent?: RequestLimiter<Request>) {
    this.options = options
    const { clock, store, rules } = options
    this.wallClock = () => clock.now()
    this.#parts = parent === undefined ? createParts(options) : parent.#parts
    this.#unitsOf = compileUnits(options.cost, this.warner)
    this.#skips = compileSkip(options.skip, this.warner)
    this.#ruleSet = this.#compile(isList(rules) ? rules : (parent?.sourcedRules ?? []))
    this.#claimOrThrow()
    if (parent !== undefined) return
    this.#unsubscribe = store.subscribe?.((event) => this.#evicted(event))
    if (!isList(rules)) this.#openBook(rules)
  }

  get warner(): Warner {
    return this.#parts.warner
  }

  /** The rules in force that a source gave. */
  get sourcedRules(): readonly ParsedRule[] {
    return this.#book?.current?.rules ?? []
  }

  get ruleSet(): RuleSet {
    return this.#ruleSet
  }

  /** Whether no rule, now or later, reads more than what is there when a request arrives. */
  get readsArrivalOnly(): boolean {
    const { cost, skip, rules } = this.options
    return (
      Array.isArray(rules) && typeof cost === "number" && skip === undefined && this.#ruleSet.readsArrivalOnly
    )
  }

  on<Name extends keyof LimiterEvents<Request>>(
    name: Name,
    listener: (...args: LimiterEvents<Request>[Name]) => void,
  ): void {
    this.#parts.events.on(name, listener)
  }

  off<Name extends keyof LimiterEvents<Request>>(
    name: Name,
    listener: (...args: LimiterEvents<Request>[Name]) => void,
  ): void {
    this.#parts.events.off(name, listener)
  }

  async decide(request: Request, options?: CostOption): Promise<Decision> {
    this.#requireOpen()
    return this.admit(factsOf(request), request, parseCost(options))
  }

  async enforce(request: Request, options?: CostOption): Promise<Decision> {
    const decision = await this.decide(request, options)
    if (!decision.allowed) throw new RateLimitExceededError(decision)
    return decision
  }

  async peek(request: Request, options?: CostOption): Promise<Decision> {
    this.#requireOpen()
    const cost = parseCost(options)
    await this.#firstRules
    return this.#parts.decider.peek(this.#asks(factsOf(request), request, cost))
  }

  async refund(decision: Decision): Promise<void> {
    this.#requireOpen()
    await this.#parts.decider.refund(decision)
  }

  async reset(request: Request, options: { readonly policies?: readonly string[] } = {}): Promise<void> {
    this.#requireOpen()
    await this.#firstRules
    const { policies } = options
    const unknown = policies?.find((name) => !this.#ruleSet.names.includes(name))
    if (unknown !== undefined) {
      const accepted = this.#ruleSet.names.map((name) => JSON.stringify(name)).join(", ")
      throw new InvalidOptionError([
        { path: "policies", message: `${JSON.stringify(unknown)} is not the name of a rule`, accepted },
      ])
    }
    await this.#parts.decider.reset(this.#ruleSet.counters(factsOf(request), request, policies))
  }

  async ready(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    this.#requireOpen()
    options.signal?.throwIfAborted()
    await this.#book?.ready(options)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    for (const limiter of [this, ...this.#routes]) releaseNames(this.options.store, limiter)
    this.#book?.close()
    this.#unsubscribe?.()
    this.#parts.events.clear()
    if (this.options.ownsStore) await this.options.store.close()
  }

  /** `decide` for an adapter: facts and the framework's own request. Answers with a value when the store does. */
  admit(facts: RequestFacts, request: Request, cost: number | undefined): MaybePromise<Decision> {
    if (this.#firstRules !== undefined) return this.#firstRules.then(() => this.#admit(facts, request, cost))
    return this.#admit(facts, request, cost)
  }

  /** A limiter for one route: the rule in place of the inline one. Throws InvalidOptionError. */
  forRoute(value: object, name: string): RequestLimiter<Request> {
    const { rule, problems } = parseInlineRule({ name, ...value })
    if (rule === undefined) throw new InvalidOptionError(problems)
    const limiter = new RequestLimiter<Request>({ ...this.options, inline: rule }, this)
    this.#routes.push(limiter)
    return limiter
  }

  #admit(facts: RequestFacts, request: Request, cost: number | undefined): MaybePromise<Decision> {
    if (!this.options.enabled || this.#skips(request)) return UNLIMITED
    const decision = this.#parts.decider.take(this.#asks(facts, request, cost))
    if (!this.#parts.events.has("decision")) return decision
    if (!(decision instanceof Promise)) {
      this.#parts.events.emit("decision", decision, request)
      return decision
    }
    return decision.then((settled) => {
      this.#parts.events.emit("decision", settled, request)
      return settled
    })
  }

  #asks(facts: RequestFacts, request: Request, cost: number | undefined): readonly Ask[] {
    return this.#ruleSet.asks(facts, request, cost ?? this.#unitsOf(request))
  }

  #compile(sourced: readonly ParsedRule[]): RuleSet {
    const rules = this.options.inline === undefined ? sourced : [this.options.inline, ...sourced]
    return compileRuleSet(rules, this.#parts.context, this.options.headers)
  }

  #claimOrThrow(): void {
    const { store, service } = this.options
    const [taken] = claimNames(store, service, this.#ruleSet.names, this)
    if (taken === undefined) return
    releaseNames(store, this)
    throw new InvalidOptionError([
      {
        path: "name",
        message: `another limiter counts rule ${JSON.stringify(taken)} of service ${JSON.stringify(service)} on this store`,
        accepted: "a name or service of its own, or one limiter for both mounts: rateLimit({ limiter })",
      },
    ])
  }

  #openBook(source: RuleSource): void {
    this.#book = ruleBook({
      source,
      service: this.options.service,
      onLoaded: (edition) => this.#turnTo(edition),
      onError: (error) => {
        this.warner.say(
          "error",
          "SLUICE_RULES_REJECTED",
          `${error.message} The last good rules stay in force.`,
          error,
        )
        this.#parts.events.emit("rule-error", error)
      },
    })
    const giveUp = AbortSignal.timeout(MOST_WAIT_FOR_RULES_MS)
    const done = () => {
      this.#firstRules = undefined
    }
    this.#firstRules = this.#book.ready({ signal: giveUp }).then(done, done)
  }

  /** Another edition comes into force at once, for the routes too; decisions in flight finish on the one before. */
  #turnTo(edition: Edition): void {
    const { store, service } = this.options
    const own = this.options.inline === undefined ? [] : [this.options.inline.name]
    const names = edition.rules.map(({ name }) => name)
    const taken = new Set(claimNames(store, service, [...own, ...names], this))
    const problems = [
      ...edition.problems,
      ...[...taken].map((name) => ({
        path: "name",
        message: `another limiter counts rule ${JSON.stringify(name)} of service ${JSON.stringify(service)} on this store`,
      })),
    ]
    const rules = edition.rules.filter(({ name }) => !taken.has(name))
    for (const limiter of [this, ...this.#routes]) limiter.#ruleSet = limiter.#compile(rules)
    if (problems.length > 0) {
      const error = new InvalidRuleError(problems)
      this.warner.say(
        "error",
        "SLUICE_RULES_REJECTED",
        `${error.message}\nThese rules are set aside; the others are in force.`,
        error,
      )
    }
    const { version } = edition
    this.#parts.events.emit("rules", {
      names: rules.map(({ name }) => name),
      problems,
      ...(version === undefined ? {} : { version }),
    })
  }

  #evicted(event: EvictionEvent): void {
    this.warner.once(
      "SLUICE_STORE_TOO_SMALL",
      "The memory store is full and had to forget a client that was being refused. Raise memoryStore({ maxKeys }).",
    )
    this.#parts.events.emit("evicted", event)
  }

  #requireOpen(): void {
    if (this.#closed) throw new ClosedError("The limiter has been closed.")
  }
}

function factsOf(request: unknown): RequestFacts {
  return typeof request === "object" && request !== null ? request : {}
}

function parseCost(options: CostOption | undefined): number | undefined {
  const cost = options?.cost
  if (cost === undefined || isUnits(cost)) return cost
  throw new InvalidOptionError([
    { path: "cost", message: `${String(cost)} is not a cost`, accepted: "a whole number from 0 up" },
  ])
}

// Array.isArray does not narrow a readonly list.
function isList(rules: ParsedOptions["rules"]): rules is readonly ParsedRule[] {
  return Array.isArray(rules)
}
