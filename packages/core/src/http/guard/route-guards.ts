import { createHash } from "node:crypto"
import { inspect, isDeepStrictEqual } from "node:util"
import { InvalidOptionError } from "../../ground/errors.ts"
import { INLINE_MEMBERS } from "../../limiter/options/parse-options.ts"

/** A route, as its adapter tells of it. */
export interface GuardedRoute {
  /** Tells people which one it is: `GET /users/:id`. */
  readonly label: string
  /** Routes with the same count together, and the rule is named after it. Default: the label. */
  readonly counter?: string
  /** Where the rule is written, which messages begin with: `route GET /users/:id config.rateLimit`. Default: nowhere. */
  readonly path?: string
  /** Names of members beside the rule that are the adapter's own. Default: none. */
  readonly besides?: readonly string[]
}

interface Known<Guard> {
  readonly guard: Guard
  /** As it is written, without what is beside it. */
  readonly rule: Readonly<Record<string, unknown>>
  /** Of the rule, given or made. */
  readonly name: unknown
  /** Of the route that it was made for. */
  readonly label: string
}

/** The guards that a guard has for routes, one for each route or group. */
export class RouteGuards<Guard> {
  readonly #known = new Map<string, Known<Guard>>()

  /** All that there are now. */
  get all(): readonly Guard[] {
    return [...this.#known.values()].map(({ guard }) => guard)
  }

  /** The one for a route with this rule; `make` makes it where there is none. Throws {@link InvalidOptionError}. */
  join(written: unknown, route: GuardedRoute, make: (rule: object, name: string) => Guard): Guard {
    const { label, counter = label, path = "", besides = [] } = route
    if (typeof written !== "object" || written === null) {
      throw wrong(path, `${inspect(written)} is not a rule`, 'false, or { limit: 5, window: "1 minute" }')
    }
    const { group, ...rest }: { readonly group?: unknown; readonly [name: string]: unknown } = { ...written }
    if (group !== undefined && (typeof group !== "string" || group === "")) {
      throw wrong(at(path, "group"), `${inspect(group)} is not a group`, "a non-empty text")
    }
    const rule = Object.fromEntries(Object.entries(rest).filter(([name]) => !besides.includes(name)))
    const key = group === undefined ? `route ${counter}` : `group ${group}`
    const known = this.#known.get(key)
    if (known !== undefined) {
      if (isDeepStrictEqual(known.rule, rule)) return known.guard
      const whose = group === undefined ? "the same route" : `group ${inspect(group)}`
      const accepted = `the rule of route ${known.label}, or another group`
      throw wrong(path, `is another rule for ${whose}`, accepted)
    }
    const { name = namedAfter(group ?? counter) } = rule
    this.#requireFree(name, path)
    const guard = making(path, ["group", ...besides], () => make(rule, String(name)))
    this.#known.set(key, { guard, rule, name, label })
    return guard
  }

  /** One that has been closed: its route or group may have another rule. */
  delete(guard: Guard): void {
    for (const [key, known] of this.#known) if (known.guard === guard) this.#known.delete(key)
  }

  #requireFree(name: unknown, path: string): void {
    for (const { name: other, label } of this.#known.values()) {
      if (name !== other) continue
      const accepted = "another name, or the same `group` on both routes, which then share one counter"
      throw wrong(at(path, "name"), `${inspect(name)} is the rule of route ${label}`, accepted)
    }
  }
}

/** Returns the text as the name of a rule: unchanged if it is a valid name, else the valid part of it and 96 bits of its hash. */
export function namedAfter(text: string): string {
  const plain = text.replace(/[^ !#-[\]-~]/gu, "?")
  if (plain === text && text.length <= 64) return text
  return `${plain.slice(0, 47)}~${createHash("sha256").update(text).digest("base64url").slice(0, 16)}`
}

/** What is made, or what is wrong with it, where that is, and which members there are `besides`. */
function making<T>(path: string, besides: readonly string[], make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    throw new InvalidOptionError(
      error.problems.map((problem) => ({
        ...problem,
        path: at(path, problem.path),
        ...(problem.accepted === INLINE_MEMBERS && { accepted: [INLINE_MEMBERS, ...besides].join(", ") }),
      })),
    )
  }
}

function at(path: string, member: string): string {
  return [path, member].filter((part) => part !== "").join(".")
}

function wrong(path: string, message: string, accepted: string): InvalidOptionError {
  return new InvalidOptionError([{ path, message, accepted }])
}
