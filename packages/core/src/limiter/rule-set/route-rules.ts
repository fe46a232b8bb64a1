import { inspect, isDeepStrictEqual } from "node:util"
import { InvalidOptionError } from "../../ground/errors.ts"
import { show } from "../../ground/show.ts"
import type { ParsedRule } from "../../rules/rule.ts"

/** The key of a route within a mount, with the route's names in messages. */
export interface RouteKey {
  /** Routes of one mount that have the same key count together. */
  readonly key: string
  /** The name of all routes with this key in messages: "the same route". */
  readonly whose: string
  /** The name of the route itself in messages: "route GET /users/:id". */
  readonly label: string
}

interface RouteEntry<Limiter> {
  readonly rule: ParsedRule
  readonly limiter: Limiter
  /** The mounts that use the rule. */
  readonly mounts: Map<object, RouteKey>
}

/**
 * The rules of a limiter's single routes by name, each with the limiter of its route. Mounts with the same rule count
 * together, like two apps that share a limiter. A name becomes free when the last mount with the rule has left.
 */
export class RouteRules<Limiter> {
  readonly #entries = new Map<string, RouteEntry<Limiter>>()

  /**
   * Returns the limiter for a route of a mount. Calls `make` if no route has this rule yet. Throws InvalidOptionError
   * if the route already has another rule, or if the rule's name is already taken by another route.
   */
  join(mount: object, route: RouteKey, rule: ParsedRule, make: () => Limiter): Limiter {
    for (const { rule: known, limiter, mounts } of this.#entries.values()) {
      const joined = mounts.get(mount)
      if (joined?.key !== route.key) continue
      if (isDeepStrictEqual(known, rule)) return limiter
      throw wrong(
        "",
        `differs from the existing rule for ${route.whose}`,
        `the same rule as ${joined.label}, or another group`,
      )
    }
    const entry = this.#entries.get(rule.name)
    if (entry === undefined) {
      const limiter = make()
      this.#entries.set(rule.name, { limiter, rule, mounts: new Map([[mount, route]]) })
      return limiter
    }
    const joined = entry.mounts.get(mount)
    if (joined !== undefined) {
      const accepted = "another name, or the same `group` on both routes, so that they share one counter"
      throw wrong(
        "name",
        `${inspect(rule.name)} is already the name of the rule of ${joined.label}`,
        accepted,
      )
    }
    if (!isDeepStrictEqual(entry.rule, rule)) {
      const accepted = "another name, or the same rule at both mounts, so that they share one counter"
      throw wrong(
        "name",
        `${show(rule.name)} is already the name of a different rule at another mount of this limiter`,
        accepted,
      )
    }
    entry.mounts.set(mount, route)
    return entry.limiter
  }

  /** Returns all current entries. */
  get all(): readonly { readonly limiter: Limiter; readonly rule: ParsedRule }[] {
    return [...this.#entries.values()]
  }

  /** Removes the mount from a rule that it has joined. Returns the limiter if no other mount uses it. */
  leave(mount: object, limiter: Limiter): Limiter | undefined {
    for (const [name, entry] of this.#entries) {
      if (entry.limiter !== limiter) continue
      entry.mounts.delete(mount)
      if (entry.mounts.size > 0) return undefined
      this.#entries.delete(name)
      return limiter
    }
    return undefined
  }
}

function wrong(path: string, message: string, accepted: string): InvalidOptionError {
  return new InvalidOptionError([{ path, message, accepted }])
}
