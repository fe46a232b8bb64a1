import { InvalidRuleError, type Problem } from "@sluice/core"
import { createWarner, type Incident, show, textOf, type Warner } from "@sluice/core/kit"
import { SafeEvents } from "@sluice/core/rules"
import type { RuleBookEvents } from "../rule-book.ts"
import { contentOf, type LoadFailure, listed, recovered, rulesEvent } from "./edition.ts"
import type { ParsedBookOptions } from "./options.ts"
import { beginRejection, endRejection, rejectionIncident } from "./rejection-log.ts"
import type { RuleChange, ServiceFollower, ServiceRules } from "./service-rules.ts"

const RULE_BOOK_EVENTS: Readonly<Record<keyof RuleBookEvents, true>> = {
  rules: true,
  "rule-error": true,
  "rules-stale": true,
  warning: true,
}

/** Reports changes and failures of rules to readers, listeners and the log. */
export class Reporter {
  readonly events: SafeEvents<RuleBookEvents>
  readonly #warner: Warner
  readonly #options: ParsedBookOptions
  /** The rejection of the list of all services. */
  readonly #listRejection: Incident
  /**
   * Rejections that were already emitted. Each rejection is remembered until its version is replaced, even if other
   * loads fail in the meantime.
   */
  readonly #emitted = new WeakSet<LoadFailure>()
  /** True if the latest load of an unfollowed name could not read the source. */
  #isFailing = false
  /**
   * First problem of the latest rejected document of an unfollowed name. A document that serves many names has the same
   * first problem for each of them.
   */
  #problem: Problem | undefined

  constructor(options: ParsedBookOptions) {
    this.#options = options
    this.events = new SafeEvents<RuleBookEvents>(RULE_BOOK_EVENTS, (error, event) =>
      this.#warner.once(
        "SLUICE_CALLBACK_FAILED",
        `A listener of "${event}" failed: ${textOf(error)}. Handle the error in the listener.`,
        `on ${event}`,
        error,
      ),
    )
    this.#warner = createWarner(options.logger, (warning) => this.events.emit("warning", warning))
    this.#listRejection = rejectionIncident(this.#warner, options.timing)
  }

  /**
   * Reports that other rules are in force. Notifies readers first, so that the new rules are already in use when
   * listeners run.
   */
  changed({ readers, service }: ServiceRules, { change, edition, before }: RuleChange): void {
    for (const reader of [...readers]) reader.onEdition(edition, change)
    if (before !== undefined && before.rules.length > 0 && edition.rules.length === 0) {
      const message = `${this.#placeOf(service)}: all rules were removed, so none limits requests now. Before: ${contentOf(before)}. If this is a mistake, store rules again.`
      this.#warner.say("warn", "SLUICE_RULES_REMOVED", message)
    }
    this.events.emit("rules", rulesEvent(edition, change))
  }

  /**
   * Reports that the rules of a service were not loaded. Without `service`, reports that the list of all services was
   * not loaded. `all` are the rules that should have been loaded. Every rejected version emits an event. Any other
   * failure emits an event unless the log already reports the failure. An invalid document or an outage is reported
   * once for all unfollowed names.
   */
  failed(error: LoadFailure, all: readonly ServiceRules[], service: string | undefined): void {
    const rules = service === undefined ? undefined : all[0]
    const isFollowed = rules?.isFollowed !== false
    if (!isFollowed && !this.#isNewsOfNames(error)) return
    const incident = rules === undefined ? this.#listRejection : this.#incidentOf(rules)
    const isNews = beginRejection(incident, this.#failureOf(error, all, service), error)
    if (!isNews && !all.some(({ rejection }) => rejection === error)) return
    if (this.#emitted.has(error)) return
    this.#emitted.add(error)
    for (const reader of readersOf(all)) reader.onError(error)
    if (service === undefined) this.events.emit("rule-error", error)
    else this.events.emit("rule-error", error, service)
  }

  /** Reports once the problems that do not concern the loaded rules. */
  othersRejected(problems: readonly Problem[]): void {
    if (problems.length === 0) return
    const error = new InvalidRuleError(problems)
    const message = `${this.#options.name}: the source has problems outside the rules in force. Correct them.\n${error.message}`
    this.#warner.once("SLUICE_RULES_REJECTED", message, message, error)
  }

  /**
   * Reports the rules in force after a successful load: only the valid rules, or all rules if the log still reports a
   * problem.
   */
  loaded(rules: ServiceRules): void {
    const { edition, known, service, rejection, isFollowed, incident } = rules
    if (!isFollowed) {
      this.#isFailing = false
      if (incident !== undefined && incident.lines.length > 0) this.#problem = undefined
    }
    // A later load has rejected the rules that are stored now.
    if (rejection !== undefined) return
    if (edition !== undefined && edition.problems.length > 0) {
      const error = new InvalidRuleError(edition.problems)
      const what = because("some rules are left out", edition.problems)
      const message = `${this.#placeOf(service)}: ${what}\n${error.message}\nIts valid rules are in force: ${contentOf(edition)}.`
      beginRejection(this.#incidentOf(rules), message, error)
    } else if (incident !== undefined) {
      const inForce = known === undefined ? "no rules, because none are stored" : contentOf(known)
      endRejection(incident, `${this.#placeOf(service)}: ${recovered(inForce)}`)
    }
  }

  /** Reports that the list of all services can be loaded again, if the log reports that it cannot be loaded. */
  listLoaded(): void {
    const message = `${this.#placeOf(undefined)}: the list of services can be loaded again.`
    endRejection(this.#listRejection, message)
  }

  /**
   * Reports for how many milliseconds the rules of a service, or of all services without `service`, could not be
   * loaded.
   */
  stale(ageMs: number, all: readonly ServiceRules[], service: string | undefined): void {
    const meaning = all.some(({ edition }) => edition !== undefined)
      ? "so the rules may be out of date. The last valid rules stay in force."
      : "and no rules have been loaded yet. None are in force."
    const message = `${this.#placeOf(service)}: loading has failed for ${Math.round(ageMs / 1000)} s, ${meaning}`
    this.#warner.say("error", "SLUICE_RULES_STALE", message)
    for (const reader of readersOf(all)) reader.onStale(ageMs)
    this.events.emit("rules-stale", { ...(service !== undefined && { service }), ageMs })
  }

  /** Stops reporting. */
  close(): void {
    this.#listRejection.end()
    this.events.clear()
  }

  /** False if the latest reported failure of unfollowed names was the same kind of failure. */
  #isNewsOfNames(error: LoadFailure): boolean {
    if (!(error instanceof InvalidRuleError)) {
      const wasFailing = this.#isFailing
      this.#isFailing = true
      return !wasFailing
    }
    const [first] = error.problems
    const isNews = first === undefined || first !== this.#problem
    this.#problem = first
    return isNews
  }

  /** Returns the log incident of these rules. Its line is repeated only if the rules are kept up to date. */
  #incidentOf(rules: ServiceRules): Incident {
    rules.incident ??= rejectionIncident(this.#warner, this.#options.timing, rules.isFollowed)
    return rules.incident
  }

  #failureOf(error: LoadFailure, all: readonly ServiceRules[], service: string | undefined): string {
    const editions = all.flatMap(({ known }) => known ?? [])
    const inForce =
      editions.length === 0
        ? "None of its rules are in force yet."
        : service === undefined
          ? "The previous rules stay in force."
          : `The previous rules stay in force: ${editions.map(contentOf).join()}.`
    const what =
      error instanceof InvalidRuleError ? `${because("the stored rules are rejected", error.problems)}\n` : ""
    return `${this.#placeOf(service)}: ${what}${error.message}\n${inForce}`
  }

  #placeOf(service: string | undefined): string {
    return `${this.#options.name}, ${service === undefined ? "all services" : `service ${show(service)}`}`
  }
}

/** Returns `the stored rules are rejected, because rule "login" is invalid.` */
function because(what: string, problems: readonly Problem[]): string {
  const rules = new Set(problems.flatMap(({ rule }) => rule ?? []))
  if (rules.size === 0) return `${what}.`
  return `${what}, because ${listed(rules)} ${rules.size === 1 ? "is" : "are"} invalid.`
}

function readersOf(all: readonly ServiceRules[]): readonly ServiceFollower[] {
  return all.flatMap(({ readers }) => [...readers])
}
