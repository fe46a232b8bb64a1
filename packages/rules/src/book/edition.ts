import { InvalidRuleError, RuleSourceError, type RulesEvent } from "@sluice/core"
import { show } from "@sluice/core/kit"
import {
  type Edition,
  locate,
  metadataProblems,
  parseRules,
  plainMetadata,
  problemWithoutCredentials,
} from "@sluice/core/rules"
import type { LoadedRules } from "../source.ts"

/** The result of a source that contains no document for a service. */
export const NOTHING: LoadedRules = { rules: [], problems: [] }

/** Returns the rules of a service after checking them, because a third-party source may return anything. */
export function editionOf(service: string, loaded: LoadedRules): Edition {
  const { rules: given, problems: reported, version } = loaded
  const { rules, problems: found } = parseRules(given, "rules")
  const wrong = metadataProblems(loaded.metadata).map((problem) => locate("", problem))
  const problems = [...reported, ...wrong, ...found].map(problemWithoutCredentials)
  const metadata = wrong.length === 0 ? plainMetadata(loaded.metadata) : undefined
  return {
    service,
    rules,
    problems,
    ...(version !== undefined && { version }),
    ...(metadata !== undefined && { metadata }),
  }
}

/** True if the source contains no document for the service, not even a document without rules. */
export function isNothing({ rules, problems, version }: Edition, stamp: string | undefined): boolean {
  return rules.length === 0 && problems.length === 0 && version === undefined && stamp === undefined
}

/** The error of a failed load: either the source could not be read, or its rules were rejected. */
export type LoadFailure = RuleSourceError | InvalidRuleError

/** Converts an error of a source to an error with a code. `service` is undefined for a load of all services. */
export function loadError(service: string | undefined, cause: unknown): LoadFailure {
  if (cause instanceof RuleSourceError || cause instanceof InvalidRuleError) return cause
  const reason = cause instanceof Error ? cause.message : show(cause)
  const whose = service === undefined ? "all services" : `service ${show(service)}`
  return new RuleSourceError(`The rules of ${whose} cannot be loaded: ${reason}`, { cause })
}

/** True if the stored rules were rejected. False if the rules could not be read. */
export function isRejection(error: LoadFailure): boolean {
  return error.problems.length > 0
}

/** True if the source could not be read. False if the source was read, even if its rules were rejected. */
export function isOutage(error: LoadFailure | undefined): boolean {
  return error !== undefined && !isRejection(error)
}

/** Returns the event for a version of the rules. */
export function rulesEvent(edition: Edition, change: RulesEvent["change"]): RulesEvent {
  const { service, version, problems } = edition
  return { service, change, names: namesOf(edition), problems, ...(version !== undefined && { version }) }
}

/** Returns the names of the rules. */
function namesOf(edition: Pick<Edition, "rules">): readonly string[] {
  return edition.rules.map(({ name }) => name)
}

/** Maximum number of rules named in a message, because a service may have thousands of rules. */
const MOST_NAMED = 20

/** Returns `rules "login", "daily"`. */
export function listed(names: Iterable<string>): string {
  const shown = Array.from(names, (name) => show(name))
  const more = shown.length > MOST_NAMED ? ` and ${shown.length - MOST_NAMED} more` : ""
  return `${shown.length === 1 ? "rule" : "rules"} ${shown.slice(0, MOST_NAMED).join(", ")}${more}`
}

/** Returns `version 7 with the rules "login", "daily"`. */
export function contentOf(edition: Pick<Edition, "rules" | "version">): string {
  const rules = edition.rules.length === 0 ? "no rules" : `the ${listed(namesOf(edition))}`
  return edition.version === undefined ? rules : `version ${edition.version} with ${rules}`
}

/** Returns the message for when all problems are solved, with the rules that are now in force. */
export function recovered(inForce: string): string {
  return `the stored rules can be used again. In force now: ${inForce}.`
}
