import { InvalidRuleError, textOf } from "../../errors.ts"
import { SafeEvents } from "../../events.ts"
import { createWarner, type Logger, type Warner } from "../../warnings.ts"
import { show } from "../problems.ts"
import type { RuleBookEvents } from "../rule-book.ts"
import { namesOf, rulesEvent } from "./edition.ts"
import type { LoadFailure } from "./load-loop.ts"
import type { Page, PageReader, Turn } from "./page.ts"

const RULE_BOOK_EVENTS: Readonly<Record<keyof RuleBookEvents, true>> = {
  rules: true,
  "rule-error": true,
  "rules-stale": true,
  warning: true,
}

/** Tells readers, listeners and the log what happened to rules. */
export class Announcer {
  readonly events: SafeEvents<RuleBookEvents>
  readonly #warner: Warner
  readonly #name: string
  /** Whether the log says that the list of all services cannot be loaded, and not yet that it can. */
  #isListToldWrong = false

  /** `name` is what messages call the source. */
  constructor(name: string, logger: Logger | undefined) {
    this.#name = name
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

  /** Other rules are in force: the readers first, so that a listener finds them so. */
  turned(page: Page, { change, edition, before }: Turn): void {
    const { service, readers } = page
    const event = rulesEvent(edition, change)
    for (const reader of [...readers]) reader.onEdition(edition, change)
    if (edition.problems.length > 0) {
      const error = new InvalidRuleError(edition.problems)
      const lost = namesOf(before).filter((name) => !event.names.includes(name))
      const gone =
        lost.length === 0 ? "" : ` No longer in force: ${lost.map((name) => show(name)).join(", ")}.`
      const message = `${this.#placeOf(service)}: ${error.message}\nThese rules are set aside; the others are in force.${gone}`
      this.#warner.say("error", "SLUICE_RULES_REJECTED", message, error)
      page.isToldWrong = true
    }
    this.events.emit("rules", event)
  }

  /** A load of one service failed, or with `pages` one of all. */
  failed(error: LoadFailure, service: string | undefined, pages: readonly Page[]): void {
    const hasRules = pages.some(({ known }) => known !== undefined)
    const inForce = hasRules
      ? "The last good rules stay in force."
      : "None of its rules are in force until this is mended."
    const message = `${this.#placeOf(service)}: ${error.message}\n${inForce}`
    this.#warner.say("error", "SLUICE_RULES_REJECTED", message, error)
    if (service === undefined) this.#isListToldWrong = true
    else for (const page of pages) page.isToldWrong = true
    for (const reader of readersOf(pages)) reader.onError(error)
    if (service === undefined) this.events.emit("rule-error", error)
    else this.events.emit("rule-error", error, service)
  }

  /** What is stored for a service is in force. Whoever was told that it is not has mended it, and looks for a word of that. */
  loaded(page: Page): void {
    if (!page.isToldWrong || page.rejection !== undefined || (page.edition?.problems.length ?? 0) > 0) return
    page.isToldWrong = false
    this.#recovered(page.service)
  }

  /** The same of the list of all services. */
  listLoaded(): void {
    if (!this.#isListToldWrong) return
    this.#isListToldWrong = false
    this.#recovered(undefined)
  }

  #recovered(service: string | undefined): void {
    const message = `${this.#placeOf(service)}: what is stored can be used again, and is in force.`
    this.#warner.say("warn", "SLUICE_RULES_RECOVERED", message)
  }

  stale(ageMs: number, service: string | undefined, pages: readonly Page[]): void {
    // Who reads of last good rules looks for what is wrong elsewhere.
    const meaning = pages.some(({ edition }) => edition !== undefined)
      ? "so the rules may be out of date. The last good ones stay in force."
      : "and there have been no rules yet. None are in force."
    const message = `${this.#placeOf(service)}: loading has failed for ${Math.round(ageMs / 1000)} s, ${meaning}`
    this.#warner.say("error", "SLUICE_RULES_STALE", message)
    for (const reader of readersOf(pages)) reader.onStale(ageMs)
    this.events.emit("rules-stale", { ...(service !== undefined && { service }), ageMs })
  }

  #placeOf(service: string | undefined): string {
    return `${this.#name}, ${service === undefined ? "all services" : `service ${show(service)}`}`
  }
}

function readersOf(pages: readonly Page[]): readonly PageReader[] {
  return pages.flatMap(({ readers }) => [...readers])
}
