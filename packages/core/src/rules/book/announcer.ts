import { InvalidRuleError, textOf } from "../../errors.ts"
import { SafeEvents } from "../../events.ts"
import { createWarner, type Logger, type Warner } from "../../warnings.ts"
import { show } from "../problems.ts"
import type { RuleBookEvents } from "../rule-book.ts"
import { namesOf, rulesEvent } from "./edition.ts"
import type { LoadFailure } from "./load-loop.ts"
import type { Page, PageReader, Turn } from "./page.ts"

/** Tells readers, listeners and the log what happened to rules. */
export class Announcer {
  readonly events: SafeEvents<RuleBookEvents>
  readonly #warner: Warner
  readonly #name: string

  /** `name` is what messages call the source. */
  constructor(name: string, logger: Logger | undefined) {
    this.#name = name
    this.events = new SafeEvents<RuleBookEvents>((error, event) =>
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
  turned({ service, readers }: Page, { change, edition, before }: Turn): void {
    const event = rulesEvent(edition, change)
    for (const reader of [...readers]) reader.onEdition(edition, change)
    if (edition.problems.length > 0) {
      const error = new InvalidRuleError(edition.problems)
      const lost = namesOf(before).filter((name) => !event.names.includes(name))
      const gone =
        lost.length === 0 ? "" : ` No longer in force: ${lost.map((name) => show(name)).join(", ")}.`
      const message = `${this.#placeOf(service)}: ${error.message}\nThese rules are set aside; the others are in force.${gone}`
      this.#warner.say("error", "SLUICE_RULES_REJECTED", message, error)
    }
    this.events.emit("rules", event)
  }

  /** A load of one service failed, or with `pages` one of all. */
  failed(error: LoadFailure, service: string | undefined, pages: readonly Page[]): void {
    const hasRules = pages.some(({ edition }) => edition !== undefined)
    const inForce = hasRules
      ? "The last good rules stay in force."
      : "None of its rules are in force until this is mended."
    const message = `${this.#placeOf(service)}: ${error.message}\n${inForce}`
    this.#warner.say("error", "SLUICE_RULES_REJECTED", message, error)
    for (const reader of readersOf(pages)) reader.onError(error)
    if (service === undefined) this.events.emit("rule-error", error)
    else this.events.emit("rule-error", error, service)
  }

  stale(ageMs: number, service: string | undefined, pages: readonly Page[]): void {
    const message =
      `${this.#placeOf(service)}: loading has failed for ${Math.round(ageMs / 1000)} s, so the rules may be out of date. ` +
      "The last good ones stay in force."
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
