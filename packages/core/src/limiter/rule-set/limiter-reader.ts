import type { Clock } from "../../ground/clock.ts"
import { ClosedError, InvalidRuleError } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import type { SignalOption } from "../../ground/signal.ts"
import { beforeDeadline, ignore } from "../../ground/time.ts"
import type { Logger, Warner } from "../../ground/warnings.ts"
import type {
  Edition,
  LiveRules,
  OpenedRules,
  ReadyOptions,
  RulesReader,
  RulesStatus,
  UntilLoaded,
} from "../../rules/live-rules.ts"
import type { ParsedRule } from "../../rules/rule.ts"
import type { ParsedOptions } from "../options/parse-options.ts"
import { claimNames, takenProblem } from "./name-claims.ts"
import type { RuleContext } from "./rule-context.ts"

/**
 * Maximum wait of a request for the first rules, in milliseconds. Without it, a source that hangs would block the
 * app.
 */
const MOST_WAIT_FOR_RULES_MS = 1_000

/** The part of a limiter that reacts to changes of its rules. */
export interface RulesListener {
  readonly context: RuleContext
  readonly events: RulesReader["events"]
  /** Called with the rules that are in force for `owner`, which is the limiter or a route. */
  follow(owner: object, rules: readonly ParsedRule[]): void
  /** Called when changed rules have come into force. */
  turnToNewRules(): void
}

/** The owner of a limiter's rules and of their names. */
export interface RulesOwner {
  /**
   * Compiles a version of the rules, synchronously if `isNeededNow`. Returns the function that brings the version
   * into force.
   */
  compileAll(edition: Edition, isNeededNow: boolean): MaybePromise<() => void>
}

/**
 * The reader of a limiter's live rules. The reader rejects a version while another limiter counts under one of the
 * version's rule names.
 */
export class LimiterReader implements RulesReader {
  readonly clock: Clock
  readonly logger: Logger | undefined
  readonly warner: Warner
  readonly untilLoaded: UntilLoaded
  readonly events: RulesReader["events"]
  readonly #options: ParsedOptions
  readonly #listener: RulesListener
  readonly #owner: RulesOwner
  /** Undefined while the limiter is being created. */
  readonly #opened: OpenedRules | undefined
  /** The latest version of the rules that has come into force. */
  edition: Edition | undefined
  /**
   * A promise that settles when decisions can start, because the first rules are loaded or cannot be loaded in time.
   * Undefined after it has settled.
   */
  first: Promise<void> | undefined

  /** Throws the errors of `LiveRules.open`. */
  constructor(options: ParsedOptions, listener: RulesListener, rules: LiveRules, owner: RulesOwner) {
    this.clock = options.clock
    this.logger = options.logger
    this.warner = listener.context.warner
    this.untilLoaded = options.untilLoaded
    this.events = listener.events
    this.#options = options
    this.#listener = listener
    this.#owner = owner
    this.#opened = rules.open(options.service, this)
    this.first = this.#loaded()
  }

  get status(): RulesStatus {
    return this.#rules.status
  }

  async ready(options: ReadyOptions): Promise<void> {
    await this.#rules.ready(options)
  }

  async refresh(options: SignalOption): Promise<void> {
    await this.#rules.refresh(options)
  }

  close(): void {
    this.#rules.close(new ClosedError("The limiter has been closed."))
  }

  /** Compiles a version, including the rules of routes. Decisions in flight finish on the previous version. */
  prepare(edition: Edition, again: () => void): MaybePromise<() => void> {
    const { store, service } = this.#options
    const names = edition.rules.map(({ name }) => name)
    const taken = claimNames(store, service, names, this.#owner, again)
    if (taken.length > 0) throw new InvalidRuleError(taken.map((name) => takenProblem(service, name)))
    const isDenying = this.untilLoaded.onRulesMissing === "deny"
    // Compile synchronously while the limiter is being created. Such a limiter may be used in the same turn, and
    // would admit requests without its rules.
    const compiled = this.#owner.compileAll(edition, this.#opened === undefined && !isDenying)
    const enforceWith = (bringIntoForce: () => void) => () => {
      this.edition = edition
      bringIntoForce()
      this.#listener.turnToNewRules()
    }
    return compiled instanceof Promise ? compiled.then(enforceWith) : enforceWith(compiled)
  }

  get #rules(): OpenedRules {
    return this.#opened as OpenedRules
  }

  /** Returns a promise that settles when decisions can start; undefined if they can start now. */
  #loaded(): Promise<void> | undefined {
    // A shared rule book may already have loaded its rules, or failed to load them.
    if (this.edition !== undefined || this.status.error !== undefined) return undefined
    const done = () => {
      this.first = undefined
    }
    return beforeDeadline(this.ready({}), MOST_WAIT_FOR_RULES_MS, ignore, false, this.clock).then(done, done)
  }
}
