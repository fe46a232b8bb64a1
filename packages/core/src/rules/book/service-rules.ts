import { InvalidRuleError } from "../../ground/errors.ts"
import type { Edition, ReadyOptions, RulesEvent } from "../rule-book.ts"
import type { Complaint } from "./complaint.ts"
import type { Loader } from "./loader.ts"
import {
  editionOf,
  type Fingerprint,
  fingerprintOf,
  hasStamp,
  isNothing,
  isSame,
  type LoadFailure,
  type SourceRules,
} from "./rule-snapshot.ts"
import { WaitingList } from "./waiting-list.ts"

/** Reads the rules of a service, such as a limiter. Only `onEdition` may throw, and only while the reader opens the rules. */
export interface RulesReader {
  /** Another edition is in force. */
  onEdition(edition: Edition, change: RulesEvent["change"]): void
  onError(error: LoadFailure): void
  onStale(ageMs: number): void
}

/** What became of the rules of a service with a load. */
export interface RuleChange {
  readonly change: RulesEvent["change"]
  readonly edition: Edition
  readonly before: Edition | undefined
}

/** The rules of one service: the last good ones, and the loader that loads them by the name of the service. */
export class ServiceRules {
  readonly service: string
  readonly loader: Loader
  readonly readers: Set<RulesReader> = new Set()
  /** True while they are kept up to date: by the list of all services, or else by the loader. */
  isFollowed = false
  /** Whether the latest list of all services has it. */
  isListed = false
  /** What the log says is wrong with its rules; undefined if nothing ever was. */
  complaint: Complaint | undefined
  #edition: Edition | undefined
  #isNothing = true
  /** Of what is in force. */
  #fingerprint: Fingerprint | undefined
  /** The edition that was rejected since then. */
  #rejected: { readonly fingerprint: Fingerprint; readonly error: InvalidRuleError } | undefined
  #takenFrom = 0
  readonly #waiting = new WaitingList()

  constructor(service: string, loaderOf: (rules: ServiceRules) => Loader) {
    this.service = service
    this.loader = loaderOf(this)
  }

  /** Undefined until the first load; without rules when the source has none. */
  get edition(): Edition | undefined {
    return this.#edition
  }

  /** Undefined also when the source has nothing for the service. */
  get known(): Edition | undefined {
    return this.#isNothing ? undefined : this.#edition
  }

  /** Why what is stored now is not what is in force. */
  get rejection(): InvalidRuleError | undefined {
    return this.#rejected?.error
  }

  /** The number of the latest load that had an answer. */
  get takenFrom(): number {
    return this.#takenFrom
  }

  /**
   * Resolves when there is an edition, if only one without rules. Rejects with the error of the next failed load, or at
   * once where what is listed cannot be used.
   */
  async ready(options: ReadyOptions): Promise<void> {
    options.signal?.throwIfAborted()
    if (this.#edition !== undefined) return
    if (this.isListed && this.rejection !== undefined && options.retry !== true) throw this.rejection
    await this.#waiting.add(1, options)
  }

  /** A load has failed. */
  fail(error: LoadFailure): void {
    this.#waiting.failed(1, error)
  }

  /** Nobody reads them any more: whoever waits need not wait. */
  end(): void {
    this.#waiting.succeeded(1)
  }

  /** Nothing will be loaded any more. */
  close(error: Error): void {
    this.loader.close()
    this.complaint?.end()
    this.#waiting.close(error)
  }

  /** Somebody follows the service. That the source had nothing, or nothing that can be used, is forgotten: it may be outdated. */
  follow(): void {
    this.isFollowed = true
    // What was logged once is repeated from now on.
    this.complaint?.end()
    if (this.known !== undefined) return
    this.#edition = undefined
    this.#fingerprint = undefined
    this.#rejected = undefined
  }

  /** Nobody follows the service: nothing that is wrong with its rules is repeated. */
  unfollow(): void {
    this.isFollowed = false
    this.complaint?.end()
  }

  /** Whether what has this stamp was taken or rejected already, so that nobody needs to read it again. */
  hasRead(stamp: string): boolean {
    return hasStamp(this.#fingerprint, stamp) || hasStamp(this.#rejected?.fingerprint, stamp)
  }

  /**
   * Takes what a load has found as a whole, or rejects it as a whole if anything in it is invalid. If the service has no
   * edition yet, its valid rules are taken, unless `isStrict`. Returns undefined if nothing changes: the same is in force, or
   * what a later load has found. Throws InvalidRuleError for a rejected edition, and what reading throws.
   */
  take(load: number, found: SourceRules, isStrict: boolean): RuleChange | undefined {
    if (load < this.#takenFrom) return undefined
    this.#takenFrom = load
    if (this.#rejected !== undefined && isSame(this.#rejected.fingerprint, found)) throw this.#rejected.error
    if (isSame(this.#fingerprint, found)) {
      this.#rejected = undefined
      return undefined
    }
    const loaded = found.read()
    const fingerprint = fingerprintOf(found, loaded)
    const edition = editionOf(this.service, loaded)
    const isFirst = this.known === undefined && edition.rules.length > 0
    if (edition.problems.length > 0 && (isStrict || !isFirst)) {
      const error = new InvalidRuleError(edition.problems)
      this.#rejected = { fingerprint, error }
      throw error
    }
    const [before, wasNothing] = [this.#edition, this.#isNothing]
    this.#rejected = undefined
    this.#fingerprint = fingerprint
    this.#edition = edition
    this.#isNothing = isNothing(edition, found.stamp)
    this.#waiting.succeeded(1)
    const change =
      before === undefined ? "loaded" : this.#isNothing ? "gone" : wasNothing ? "loaded" : "changed"
    return { change, edition, before }
  }
}
