import { InvalidRuleError } from "../../ground/errors.ts"
import type { Edition, ReadyOptions, RulesEvent } from "../rule-book.ts"
import type { Complaint } from "./complaint.ts"
import type { LoadLoop } from "./load-loop.ts"
import {
  editionOf,
  type Found,
  hasStamp,
  isNothing,
  isSame,
  type LoadFailure,
  type Print,
  printOf,
} from "./rule-snapshot.ts"
import { WaitingList } from "./waiting-list.ts"

/** A reader of a page, such as a limiter. Only `onEdition` may throw, and only while the reader opens the page. */
export interface PageReader {
  /** Another edition is in force. */
  onEdition(edition: Edition, change: RulesEvent["change"]): void
  onError(error: LoadFailure): void
  onStale(ageMs: number): void
}

/** What became of the rules of a service with a load. */
export interface Turn {
  readonly change: RulesEvent["change"]
  readonly edition: Edition
  readonly before: Edition | undefined
}

/** The rules of one service: the last good ones, and by what they are told from others. */
export class Page {
  readonly service: string
  readonly readers: Set<PageReader> = new Set()
  /** Where the service is loaded by its name; undefined while it is in the list of all. */
  loop: LoadLoop | undefined
  /** Whether the latest list of all services has it. */
  isListed = false
  /** What the log says is wrong with its rules; undefined if nothing ever was. */
  complaint: Complaint | undefined
  #edition: Edition | undefined
  #isNothing = true
  /** Of what is in force. */
  #print: Print | undefined
  /** The edition that was rejected since then. */
  #rejected: { readonly print: Print; readonly error: InvalidRuleError } | undefined
  #takenFrom = 0
  readonly #waiting = new WaitingList()

  constructor(service: string) {
    this.service = service
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

  /** Nobody reads it any more, and nothing will be loaded. Who waits need not wait. */
  end(): void {
    this.loop?.end()
    this.loop = undefined
    this.#waiting.succeeded(1)
  }

  /** Nothing will be loaded any more. */
  close(error: Error): void {
    this.loop?.close()
    this.#waiting.close(error)
  }

  /** Whether what has this stamp was taken or rejected already, so that nobody needs to read it again. */
  hasRead(stamp: string): boolean {
    return hasStamp(this.#print, stamp) || hasStamp(this.#rejected?.print, stamp)
  }

  /**
   * Takes what a load has found as a whole, or rejects it as a whole if anything in it is invalid. If the service has no
   * edition yet, its valid rules are taken, unless `isStrict`. Returns undefined if nothing changes: the same is in force, or
   * what a later load has found. Throws InvalidRuleError for a rejected edition, and what reading throws.
   */
  take(load: number, found: Found, isStrict: boolean): Turn | undefined {
    if (load < this.#takenFrom) return undefined
    this.#takenFrom = load
    if (this.#rejected !== undefined && isSame(this.#rejected.print, found)) throw this.#rejected.error
    if (isSame(this.#print, found)) {
      this.#rejected = undefined
      return undefined
    }
    const loaded = found.read()
    const print = printOf(found, loaded)
    const edition = editionOf(this.service, loaded)
    const isFirst = this.known === undefined && edition.rules.length > 0
    if (edition.problems.length > 0 && (isStrict || !isFirst)) {
      const error = new InvalidRuleError(edition.problems)
      this.#rejected = { print, error }
      throw error
    }
    const [before, wasNothing] = [this.#edition, this.#isNothing]
    this.#rejected = undefined
    this.#print = print
    this.#edition = edition
    this.#isNothing = isNothing(edition, found.stamp)
    this.#waiting.succeeded(1)
    const change =
      before === undefined ? "loaded" : this.#isNothing ? "gone" : wasNothing ? "loaded" : "changed"
    return { change, edition, before }
  }
}
