import { inspect } from "node:util"
import { InvalidOptionError } from "../../ground/errors.ts"
import { hash } from "../../ground/hash.ts"
import { suggestion } from "../../ground/show.ts"
import type { OnRejected } from "../../limiter/options/answer-options.ts"
import { ON_REJECTED } from "../../limiter/options/options-shape.ts"
import type { RouteKey } from "../../limiter/rule-set/route-rules.ts"

/** A route, as described by its adapter. */
export interface GuardedRoute {
  /** Identifies the route in messages: `route GET /users/:id`. */
  readonly label: string
  /**
   * Routes with the same `counter` count together. The rule of these routes is named after the counter. Default: the
   * label.
   */
  readonly counter?: string
  /**
   * The place where the rule is written, with which messages begin: `route GET /users/:id config.rateLimit`.
   * Default: an empty string.
   */
  readonly path?: string
  /** Names of members that belong to the adapter, but are written beside the rule's own members. Default: none. */
  readonly besides?: readonly string[]
  /**
   * True if the guard checks only the route's rule, without steps, because another mount of the limiter checks all
   * other rules. If the guard refuses a request, units that other mounts of the limiter took for it stay taken.
   * Default: false.
   */
  readonly isAlone?: boolean
}

/** The rule that is written for a route, and the members that identify the route. */
export interface WrittenRule extends RouteKey {
  /** The rule as it is written, without `group`, `onRejected` and the adapter's own members. */
  readonly rule: object
  /** The name of the rule if the app has not named it. */
  readonly defaultName: string
  /** The name of the rule. */
  readonly name: unknown
  readonly isAlone: boolean
  /** The route's own callback for the response. Undefined if the route uses the limiter's callback. */
  readonly onRejected: OnRejected<unknown> | undefined
}

/**
 * Reads the rule of a route and passes it to `use`. Throws an InvalidOptionError whose paths say where in the app the
 * rule is written.
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
        // Suggest members that only routes accept, too.
        message: problem.message.replace(
          /; the nearest is .*/,
          (nearest) => suggestion(problem.path, ["group", "onRejected", ...besides]) || nearest,
        ),
      })),
    )
  }
}

function parse(written: unknown, route: GuardedRoute): WrittenRule {
  const { label, counter = label, besides = [], isAlone = false } = route
  if (typeof written !== "object" || written === null) {
    const accepted = 'a rule such as { limit: 5, window: "1 minute" }'
    throw wrong("", written, "a rule", isAlone ? accepted : `false, or ${accepted}`)
  }
  const { group, onRejected, ...rest }: Readonly<Record<string, unknown>> = { ...written }
  if (group !== undefined && (typeof group !== "string" || group === "")) {
    throw wrong("group", group, "a group", "a non-empty string")
  }
  if (onRejected !== undefined && typeof onRejected !== "function") {
    throw wrong("onRejected", onRejected, "a function", ON_REJECTED)
  }
  const defaultName = namedAfter(group ?? counter)
  return {
    key: group === undefined ? `route ${counter}` : `group ${group}`,
    whose: group === undefined ? "the same route" : `group ${inspect(group)}`,
    label,
    rule: Object.fromEntries(Object.entries(rest).filter(([name]) => !besides.includes(name))),
    defaultName,
    name: rest.name ?? defaultName,
    isAlone,
    onRejected: onRejected as OnRejected<unknown> | undefined,
  }
}

function wrong(path: string, value: unknown, noun: string, accepted: string): InvalidOptionError {
  return new InvalidOptionError([{ path, message: `${inspect(value)} is not ${noun}`, accepted }])
}

/**
 * Returns a valid name of a rule for the text. A valid name stays unchanged. In any other text, `?` replaces invalid
 * characters, and 96 bits of the text's hash follow.
 */
export function namedAfter(text: string): string {
  const plain = text.replace(/[^ !#-[\]-~]/gu, "?")
  if (plain === text && text.length <= 64) return text
  return `${plain.slice(0, 47)}~${hash("sha256", text, "base64url").slice(0, 16)}`
}
