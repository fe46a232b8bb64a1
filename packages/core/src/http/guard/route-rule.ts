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
  /** Routes with the same `counter` count together. Their rule is named after it. Default: the label. */
  readonly counter?: string
  /**
   * Where the rule is written; messages begin with it:
   * `route GET /users/:id config.rateLimit`. Default: an empty string.
   */
  readonly path?: string
  /** Names of members next to the rule's that belong to the adapter. Default: none. */
  readonly besides?: readonly string[]
  /**
   * True if the guard decides by the route's rule alone, without steps, because another mount of the limiter decides by
   * all other rules. If the guard refuses, the units of other mounts of the limiter are refunded. Default: false.
   */
  readonly isAlone?: boolean
}

/** The rule that is written for a route, and how its route is identified. */
export interface WrittenRule extends RouteKey {
  /** The rule as it is written, without `group`, `onRejected` and the adapter's own members. */
  readonly rule: object
  /** The name for a rule without one. */
  readonly defaultName: string
  /** The name of the rule. */
  readonly name: unknown
  readonly isAlone: boolean
  /** The route's own callback for the response; undefined if it has the limiter's. */
  readonly onRejected: OnRejected<unknown> | undefined
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
 * Returns the text as the name of a rule. A valid name stays unchanged. Otherwise `?` replaces invalid characters, and
 * 96 bits of the text's hash follow.
 */
export function namedAfter(text: string): string {
  const plain = text.replace(/[^ !#-[\]-~]/gu, "?")
  if (plain === text && text.length <= 64) return text
  return `${plain.slice(0, 47)}~${hash("sha256", text, "base64url").slice(0, 16)}`
}
