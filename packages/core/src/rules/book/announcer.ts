import { InvalidRuleError, type Problem, textOf } from "../../ground/errors.ts"
import { SafeEvents } from "../../ground/events.ts"
import { show } from "../../ground/show.ts"
import { createWarner, type Logger, type Warner } from "../../ground/warnings.ts"
import type { RuleBookEvents } from "../rule-book.ts"
import { Complaint } from "./complaint.ts"
import { contentOf, type LoadFailure, listed, rulesEvent } from "./rule-snapshot.ts"
import type { Page, PageReader, Turn } from "./service-rules.ts"
import type { Timing } from "./timing.ts"

const RULE_BOOK_EVENTS: Readonly<Record<keyof RuleBookEvents, true>> = {
  rules: true,
  "rule-error": true,
  "rules-stale": true,
  warning: true,
}

/** Reports to readers, listeners and the log what happened to rules. */
export class Announcer {
  readonly events: SafeEvents<RuleBookEvents>
  readonly #warner: Warner
  readonly #name: string
  readonly #timing: Timing
  /** What is wrong with the list of all services. */
  readonly #listComplaint: Complaint
  /** Those that are repeated while they last. */
  readonly #repeated = new Set<Complaint>()
  /** Rejections that listeners and metrics know. One lasts as long as its edition, even if the source fails meanwhile. */
  readonly #emitted = new WeakSet<LoadFailure>()

  /** `name` is what messages call the source. */
  constructor(name: string, logger: Logger | undefined, timing: Timing) {
    this.#name = name
    this.#timing = timing
    this.events = new SafeEvents<RuleBookEvents>(RULE_BOOK_EVENTS, (error, event) =>
      this.#warner.once(
        "SLUICE_CALLBACK_FAILED",
        `A listener of "${event}" failed: ${textOf(error)}.`,
        `on ${event}`,
        error,
      ),
    )
    this.#warner = createWarner(logger, (warning) => this.events.emit("warning", warning))
    this.#listComplaint = new Complaint(this.#warner, timing)
  }

  /** Reports that other rules are in force: to the readers first, so that a listener finds them so. */
  turned(page: Page, { change, edition }: Turn): void {
    for (const reader of [...page.readers]) reader.onEdition(edition, change)
    this.events.emit("rules", rulesEvent(edition, change))
  }

  /**
   * Reports that the rules of one service were not loaded, or without a service those of all. `pages` have them. Each rejected
   * edition is an event, and any other failure when the log did not say so before.
   */
  failed(error: LoadFailure, service: string | undefined, pages: readonly Page[], isRepeated = true): void {
    const [page] = pages
    const complaint =
      service === undefined || page === undefined ? this.#listComplaint : this.#complaintOf(page)
    const isNews = this.#raise(complaint, this.#failureOf(error, service, pages), error, isRepeated)
    if (!isNews && !pages.some(({ rejection }) => rejection === error)) return
    if (this.#emitted.has(error)) return
    this.#emitted.add(error)
    for (const reader of readersOf(pages)) reader.onError(error)
    if (service === undefined) this.events.emit("rule-error", error)
    else this.events.emit("rule-error", error, service)
  }

  /** Reports what is wrong beside the rules that are loaded here, once. */
  othersRejected(problems: readonly Problem[]): void {
    if (problems.length === 0) return
    const error = new InvalidRuleError(problems)
    const message = `${this.#name}: there are problems beside the limiter's own rules. Correct them.\n${error.message}`
    this.#warner.once("SLUICE_RULES_REJECTED", message, message, error)
  }

  /** Reports what is in force after a load that succeeded: valid rules without others, or all, if the log says otherwise. */
  loaded(page: Page, isRepeated: boolean): void {
    const { edition, known, service, rejection } = page
    // A later load has rejected what is stored now.
    if (rejection !== undefined) return
    if (edition !== undefined && edition.problems.length > 0) {
      const error = new InvalidRuleError(edition.problems)
      const what = because("some rules are left out", edition.problems)
      const message = `${this.#placeOf(service)}: ${what}\n${error.message}\nIts valid rules are in force: ${contentOf(edition)}.`
      this.#raise(this.#complaintOf(page), message, error, isRepeated)
    } else if (page.complaint !== undefined) {
      const inForce = known === undefined ? "no rules, because none are stored" : contentOf(known)
      this.#settle(page.complaint, `${this.#placeOf(service)}: ${recovered(inForce)}`)
    }
  }

  /** Reports that the list of all services can be loaded, if the log says that it cannot. */
  listLoaded(): void {
    this.#settle(this.#listComplaint, `${this.#placeOf(undefined)}: the list can be loaded again.`)
  }

  stale(ageMs: number, service: string | undefined, pages: readonly Page[]): void {
    const meaning = pages.some(({ edition }) => edition !== undefined)
      ? "so the rules may be out of date. The last good ones stay in force."
      : "and there have been no rules yet. None are in force."
    const message = `${this.#placeOf(service)}: loading has failed for ${Math.round(ageMs / 1000)} s, ${meaning}`
    this.#warner.say("error", "SLUICE_RULES_STALE", message)
    for (const reader of readersOf(pages)) reader.onStale(ageMs)
    this.events.emit("rules-stale", { ...(service !== undefined && { service }), ageMs })
  }

  /** Repeats nothing of a page that is followed no longer. */
  forget({ complaint }: Page): void {
    if (complaint === undefined) return
    complaint.end()
    this.#repeated.delete(complaint)
  }

  /** Reports nothing more. */
  close(): void {
    for (const complaint of this.#repeated) complaint.end()
    this.#repeated.clear()
    this.events.clear()
  }

  #complaintOf(page: Page): Complaint {
    page.complaint ??= new Complaint(this.#warner, this.#timing)
    return page.complaint
  }

  #raise(complaint: Complaint, message: string, error: LoadFailure, isRepeated: boolean): boolean {
    if (isRepeated) this.#repeated.add(complaint)
    return complaint.raise(message, error, isRepeated)
  }

  #settle(complaint: Complaint, message: string): void {
    this.#repeated.delete(complaint)
    complaint.settle(message)
  }

  #failureOf(error: LoadFailure, service: string | undefined, pages: readonly Page[]): string {
    const editions = pages.flatMap(({ known }) => known ?? [])
    const inForce =
      editions.length === 0
        ? "None of its rules are in force yet."
        : service === undefined
          ? "The previous editions stay in force."
          : `The previous edition stays in force: ${editions.map(contentOf).join()}.`
    const what =
      error instanceof InvalidRuleError ? `${because("an edition is rejected", error.problems)}\n` : ""
    return `${this.#placeOf(service)}: ${what}${error.message}\n${inForce}`
  }

  #placeOf(service: string | undefined): string {
    return `${this.#name}, ${service === undefined ? "all services" : `service ${show(service)}`}`
  }
}

/** Says that nothing is wrong any more, and what is in force now. */
export function recovered(inForce: string): string {
  return `what is stored can be used again. In force now: ${inForce}.`
}

/** Returns `an edition is rejected, because rule "login" is invalid.` */
function because(what: string, problems: readonly Problem[]): string {
  const rules = new Set(problems.flatMap(({ rule }) => rule ?? []))
  if (rules.size === 0) return `${what}.`
  return `${what}, because ${listed(rules)} ${rules.size === 1 ? "is" : "are"} invalid.`
}

function readersOf(pages: readonly Page[]): readonly PageReader[] {
  return pages.flatMap(({ readers }) => [...readers])
}
