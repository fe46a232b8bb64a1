import type { OnMissing } from "../../ground/policy.ts"
import { closest } from "../../ground/show.ts"
import type { Warner } from "../../ground/warnings.ts"
import { isStandIn, type Partition } from "../../request/partition.ts"
import { meantField } from "../../rules/parsing/field-name.ts"
import type { ParsedRule } from "../../rules/rule.ts"

/**
 * Number of requests without the field after which a rule is reported. Single requests may lack the field for good
 * reasons.
 */
const FIRST_REQUESTS = 20

const EFFECTS: Readonly<Record<OnMissing, string>> = {
  ip: "count by their address",
  shared: "share one counter",
  skip: "are not limited by it",
  deny: "are refused",
}

/** Fields that every request has, or whose readers log their own warnings. */
const UNWATCHED: ReadonlySet<string> = new Set(["ip", "method", "route"])

/**
 * Checks whether one of the first requests under a rule has the rule's fields. Later versions of the rule use the
 * same watch.
 */
export class FieldWatch {
  /** Number of requests that are still to be watched; 0 once a request has had the field. */
  left: number
  /** The latest request, which is checked twice if one of the app's functions returns a promise. */
  #latest: WeakRef<object> | undefined

  constructor(fields: readonly string[]) {
    this.left = fields.every((field) => UNWATCHED.has(field)) ? 0 : FIRST_REQUESTS
  }

  /** Counts a request. Returns true for the last watched request if no request has had the field. */
  isLastWithout(partition: Partition, request: object): boolean {
    if (this.#latest?.deref() === request) return false
    this.#latest = new WeakRef(request)
    const lacksField = isStandIn(partition)
    this.left = lacksField ? this.left - 1 : 0
    return lacksField && this.left === 0
  }
}

interface WatchContext {
  readonly warner: Warner
  readonly fieldOf: (field: string) => unknown
  readonly extractorNames: readonly string[]
}

/** Warns that none of the first requests under a rule had a certain field of the rule. */
export function warnOfMissingField(
  { name, onMissing }: ParsedRule,
  field: string,
  { warner, fieldOf, extractorNames }: WatchContext,
): void {
  // These warnings already contain the field and the cause.
  const isKnown = warner.has("SLUICE_EXTRACTOR_FAILED", field) || warner.has("SLUICE_BODY_NOT_PARSED", field)
  if (isKnown || UNWATCHED.has(field)) return
  warner.once(
    "SLUICE_FIELD_MISSING",
    `Rule "${name}" counts by "${field}", which was missing in each of its first ${FIRST_REQUESTS} requests. ` +
      `Such requests ${EFFECTS[onMissing]}. ${fieldOf(field) === undefined ? remedyOf(field, extractorNames) : UNSET}`,
    name,
  )
}

const UNSET =
  'The function in "fields" returned no value: mount the limiter after the code that sets it, such as authentication. ' +
  'On Fastify, leave out "hook".'

function remedyOf(field: string, extractorNames: readonly string[]): string {
  const colon = field.indexOf(":")
  if (colon === -1) return bareNameRemedy(field, extractorNames)
  if (field.startsWith("param:"))
    return `Mount the limiter on a route with the parameter "${field.slice(colon + 1)}".`
  return `Check the spelling, or limit the rule by "match" to requests that have it.`
}

/** Returns the remedy for a field name that no function of the app reads. */
export function bareNameRemedy(name: string, extractorNames: readonly string[]): string {
  const builtIn = meantField(name)
  if (builtIn !== undefined) return `Did you mean "${builtIn}"?`
  const own = closest(name, extractorNames)
  return own === undefined
    ? `Set fields: { "${name}": (request) => … } to take it from your authentication.`
    : `Did you mean "${own}" of your fields?`
}
