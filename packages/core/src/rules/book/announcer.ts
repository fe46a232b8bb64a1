import { InvalidRuleError, type Problem, textOf } from "../../errors.ts"
import { SafeEvents } from "../../events.ts"
import { createWarner, type Logger, type Warner } from "../../warnings.ts"
import { show } from "../problems.ts"
import type { Edition, RuleBookEvents } from "../rule-book.ts"
import { namesOf, rulesEvent } from "./edition.ts"
import type { LoadFailure } from "./load-loop.ts"
import type { Page, PageReader, Turn } from "./page.ts"
import { Reminder } from "./reminder.ts"
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
  /** What the log repeats: what is wrong with a page, or under undefined with the list of all services. */
  readonly #reminders = new Map<Page | undefined, Reminder>()
  /** Rejections that listeners and metrics know. One lasts as long as its edition, even if the source fails meanwhile. */
  readonly #emitted = new WeakSet<LoadFailure>()
  /** Whether the log says that the list of all services cannot be loaded, and not yet that it can. */
  #isListReportedWrong = false

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
  }

  /** Reports that other rules are in force: to the readers first, so that a listener finds them so. */
  turned(page: Page, { change, edition }: Turn): void {
    const { readers, service } = page
    for (const reader of [...readers]) reader.onEdition(edition, change)
    if (edition.problems.length > 0) {
      const error = new InvalidRuleError(edition.problems)
      const message = `${this.#placeOf(service)}: ${because("some rules are left out", edition.problems)}\n${error.message}\nIts valid rules are in force: ${contentOf(edition)}.`
      page.isReportedWrong = true
      this.#sayHourly(page, () => this.#warner.say("error", "SLUICE_RULES_REJECTED", message, error))
    }
    this.events.emit("rules", rulesEvent(edition, change))
  }

  /** Reports that the rules of one service were not loaded, or without a service those of all. `pages` have them. */
  failed(error: LoadFailure, service: string | undefined, pages: readonly Page[]): void {
    const [page] = service === undefined ? [] : pages
    this.#sayHourly(page, () => this.#sayFailed(error, service, pages))
    this.#emitFailed(error, service, pages)
  }

  /** Reports the same of a service that nobody follows. It is not repeated: the page may be forgotten at any time. */
  lookupFailed(error: LoadFailure, page: Page): void {
    this.#sayFailed(error, page.service, [page])
    this.#emitFailed(error, page.service, [page])
  }

  /** Reports what is wrong beside the rules that are loaded here, once. */
  othersRejected(problems: readonly Problem[]): void {
    if (problems.length === 0) return
    const error = new InvalidRuleError(problems)
    const message = `${this.#name}: there are problems beside the limiter's own rules. Correct them.\n${error.message}`
    this.#warner.once("SLUICE_RULES_REJECTED", message, message, error)
  }

  /** Reports that what is stored for a service is in force, if the log says that it is not. */
  loaded(page: Page): void {
    if (!page.isReportedWrong || page.rejection !== undefined) return
    if ((page.edition?.problems.length ?? 0) > 0) return
    page.isReportedWrong = false
    this.#recovered(page, page.service)
  }

  /** Reports the same of the list of all services. */
  listLoaded(): void {
    if (!this.#isListReportedWrong) return
    this.#isListReportedWrong = false
    this.#recovered(undefined, undefined)
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
  forget(page: Page | undefined): void {
    this.#reminders.get(page)?.end()
    this.#reminders.delete(page)
  }

  /** Reports nothing more. */
  close(): void {
    for (const page of [...this.#reminders.keys()]) this.forget(page)
    this.events.clear()
  }

  #emitFailed(error: LoadFailure, service: string | undefined, pages: readonly Page[]): void {
    if (service === undefined) this.#isListReportedWrong = true
    else for (const page of pages) page.isReportedWrong = true
    if (this.#emitted.has(error)) return
    this.#emitted.add(error)
    for (const reader of readersOf(pages)) reader.onError(error)
    if (service === undefined) this.events.emit("rule-error", error)
    else this.events.emit("rule-error", error, service)
  }

  #sayFailed(error: LoadFailure, service: string | undefined, pages: readonly Page[]): void {
    const editions = pages.flatMap(({ known }) => known ?? [])
    const inForce =
      editions.length === 0
        ? "None of its rules are in force yet."
        : service === undefined
          ? "The previous editions stay in force."
          : `The previous edition stays in force: ${editions.map(contentOf).join()}.`
    const what =
      error instanceof InvalidRuleError ? `${because("an edition is rejected", error.problems)}\n` : ""
    const message = `${this.#placeOf(service)}: ${what}${error.message}\n${inForce}`
    this.#warner.say("error", "SLUICE_RULES_REJECTED", message, error)
  }

  #recovered(page: Page | undefined, service: string | undefined): void {
    this.forget(page)
    const message = `${this.#placeOf(service)}: what is stored can be used again, and is in force.`
    this.#warner.say("warn", "SLUICE_RULES_RECOVERED", message)
  }

  /** Says it now, and again every hour while it lasts. What was said of the page before is not repeated. */
  #sayHourly(page: Page | undefined, say: () => void): void {
    this.forget(page)
    say()
    this.#reminders.set(page, new Reminder(say, this.#timing))
  }

  #placeOf(service: string | undefined): string {
    return `${this.#name}, ${service === undefined ? "all services" : `service ${show(service)}`}`
  }
}

/** Whether a failure has not been reported: it is another one than `before`, or rejects another edition. */
export function isNews(error: LoadFailure, before: LoadFailure | undefined, pages: readonly Page[]): boolean {
  if (error.message !== before?.message) return true
  return error !== before && pages.some(({ rejection }) => rejection === error)
}

/** Rules that a message names: a service may have thousands. */
const MOST_NAMED = 20

function listed(names: Iterable<string>): string {
  const shown = Array.from(names, (name) => show(name))
  const more = shown.length > MOST_NAMED ? ` and ${shown.length - MOST_NAMED} more` : ""
  return `${shown.length === 1 ? "rule" : "rules"} ${shown.slice(0, MOST_NAMED).join(", ")}${more}`
}

/** Returns `an edition is rejected, because rule "login" is invalid.` */
function because(what: string, problems: readonly Problem[]): string {
  const rules = new Set(problems.flatMap(({ rule }) => rule ?? []))
  if (rules.size === 0) return `${what}.`
  return `${what}, because ${listed(rules)} ${rules.size === 1 ? "is" : "are"} invalid.`
}

/** Returns `version 7 with the rules "login", "daily"`. */
function contentOf(edition: Edition): string {
  const rules = edition.rules.length === 0 ? "no rules" : `the ${listed(namesOf(edition))}`
  return edition.version === undefined ? rules : `version ${edition.version} with ${rules}`
}

function readersOf(pages: readonly Page[]): readonly PageReader[] {
  return pages.flatMap(({ readers }) => [...readers])
}
