import { isDeepStrictEqual } from "node:util"
import { InvalidOptionError } from "../../ground/errors.ts"
import { show } from "../../ground/show.ts"
import type { ParsedRule } from "../../rules/parsing/parsed-rule.ts"

interface RouteEntry<Limiter> {
  readonly limiter: Limiter
  readonly rule: ParsedRule
  /** Who counts by it now. */
  mounts: number
}

/**
 * The limiters that a limiter has for single routes, by the names of their rules. Mounts with the same rule count together, as two
 * apps that share a limiter do, and the name is free again when the last of them has left.
 */
export class RouteLimiters<Limiter extends { giveUp(): void }> {
  readonly #routes = new Map<string, RouteEntry<Limiter>>()

  /**
   * The limiter for a route with this rule; `make` makes it where there is none. Throws InvalidOptionError for another rule of the
   * name.
   */
  join(rule: ParsedRule, make: () => Limiter): Limiter {
    const known = this.#routes.get(rule.name)
    if (known === undefined) {
      const limiter = make()
      this.#routes.set(rule.name, { limiter, rule, mounts: 1 })
      return limiter
    }
    if (!isDeepStrictEqual(known.rule, rule)) {
      const message = `${show(rule.name)} is another rule where this limiter is mounted too`
      const accepted = "the same rule on both, which then count together, or another name"
      throw new InvalidOptionError([{ path: "name", message, accepted }])
    }
    known.mounts++
    return known.limiter
  }

  /** All that there are now, and their rules. */
  get all(): readonly { readonly limiter: Limiter; readonly rule: ParsedRule }[] {
    return [...this.#routes.values()]
  }

  /** One of those who joined goes. */
  leave(limiter: Limiter): void {
    for (const [name, route] of this.#routes) {
      if (route.limiter !== limiter) continue
      route.mounts--
      if (route.mounts > 0) return
      this.#routes.delete(name)
      limiter.giveUp()
    }
  }
}
