import { inspect } from "node:util"
import { InvalidOptionError } from "../../ground/errors.ts"
import { hash } from "../../ground/hash.ts"
import { suggestion } from "../../ground/show.ts"
import type { RouteKey } from "../../limiter/rule-set/route-rules.ts"

/** A route, as described by its adapter. */
export interface GuardedRoute {
  /** Identifies the route in messages: `GET /users/:id`. */
  readonly label: string
  /** Routes with the same `counter` count together. Their rule is named after it. Default: the label. */
  readonly counter?: string
  /**
   * Where the rule is written; messages begin with it:
   * `route GET /users/:id config.rateLimit`. Default: an empty string.
   */
  readonly path?: string
  /** Names of members next to the rule's that belong to the adapter. Default: none. */
  readonly besides?: readonly string[]
}

/** The rule that is written for a route, and how its route is identified. */
export interface WrittenRule extends RouteKey {
  /** The rule as it is written, without `group` and the adapter's own members. */
  readonly rule: object
  /** The name for a rule without one. */
  readonly defaultName: string
}

/**
 * Reads the rule of a route and passes it to `use`. Throws InvalidOptionError that says where in
 * the app the rule is written.
 */
export function readRouteRule<T>(written: unknown, route: GuardedRoute, use: (rule: WrittenRule) => T): T {
  const { path = "", besides = [] } = route
  try {
    return use(parse(written, route))
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    throw new InvalidOptionError(
      error.problems.map((problem) => ({
        ...problem,
        path: [path, problem.path].filter((part) => part !== "").join("."),
        // A member of a route may also be one that rules do not have.
        message: problem.message.replace(
          /; the nearest is .*/,
          (nearest) => suggestion(problem.path, ["group", ...besides]) || nearest,
        ),
      })),
    )
  }
}

function parse(written: unknown, { label, counter = label, besides = [] }: GuardedRoute): WrittenRule {
  if (typeof written !== "object" || written === null) {
    const accepted = 'false, or a rule such as { limit: 5, window: "1 minute" }'
    throw new InvalidOptionError([{ path: "", message: `${inspect(written)} is not a rule`, accepted }])
  }
  const { group, ...rest }: { readonly group?: unknown; readonly [name: string]: unknown } = { ...written }
  if (group !== undefined && (typeof group !== "string" || group === "")) {
    const message = `${inspect(group)} is not a group`
    throw new InvalidOptionError([{ path: "group", message, accepted: "a non-empty string" }])
  }
  return {
    key: group === undefined ? `route ${counter}` : `group ${group}`,
    whose: group === undefined ? "the same route" : `group ${inspect(group)}`,
    label,
    rule: Object.fromEntries(Object.entries(rest).filter(([name]) => !besides.includes(name))),
    defaultName: namedAfter(group ?? counter),
  }
}

/**
 * Returns the text as the name of a rule. A valid name stays unchanged. Otherwise `?` replaces invalid characters, and
 * 96 bits of the text's hash follow.
 */
export function namedAfter(text: string): string {
  const plain = text.replace(/[^ !#-[\]-~]/gu, "?")
  if (plain === text && text.length <= 64) return text
  return `${plain.slice(0, 47)}~${hash("sha256", text, "base64url").slice(0, 16)}`
}
