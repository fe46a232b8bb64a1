import { hash, timingSafeEqual } from "node:crypto"
import { Code, TokenError } from "../status-error.ts"

/** The tokens of services: who may change their rules, or have their requests decided. */
export interface Tokens {
  /** Whether there are none: then callers cannot be told apart. */
  readonly isEmpty: boolean
  /** Returns whether this token is that of this service, or of all. Takes the same time for every wrong token. */
  allows(token: string, service: string): boolean
  /** Returns whether this token is that of any service. Takes the same time for every wrong token. */
  knows(token: string): boolean
}

/** The service that stands for all of them. */
const EVERY = "*"

/**
 * Creates tokens by service; the one of "*" is for every service. Only their digests are kept.
 * @example
 * ```ts
 * import { tokens } from "@sluice/service"
 *
 * const known = tokens({ checkout: "s3cret" })
 * known.allows("s3cret", "checkout") // true
 * known.allows("s3cret", "search") // false
 * ```
 */
export function tokens(byService: Readonly<Record<string, string>>): Tokens {
  const digests = new Map(Object.entries(byService).map(([service, token]) => [service, digest(token)]))
  const isOf = (service: string, given: Buffer): boolean => {
    const known = digests.get(service)
    // Compared in any case, so that the time does not tell which services have a token.
    return timingSafeEqual(known ?? NONE, given) && known !== undefined
  }
  return {
    isEmpty: digests.size === 0,
    allows(token, service) {
      const given = digest(token)
      const isOwn = isOf(service, given)
      return isOf(EVERY, given) || isOwn
    },
    knows(token) {
      const given = digest(token)
      let isKnown = false
      for (const known of digests.values()) isKnown = timingSafeEqual(known, given) || isKnown
      return isKnown
    },
  }
}

/** Throws StatusError unless there are no tokens at all, or this token is that of the service. */
export function requireTokenOf(service: string, tokens: Tokens, token: string | undefined): void {
  if (tokens.isEmpty) return
  if (token === undefined) throw missing()
  if (tokens.allows(token, service)) return
  throw new TokenError(
    Code.PERMISSION_DENIED,
    `The token is not that of service ${JSON.stringify(service)}; send the token of this service.`,
  )
}

/** Throws StatusError unless there are no tokens at all, or this token is that of any service. */
export function requireKnownToken(tokens: Tokens, token: string | undefined): void {
  if (tokens.isEmpty) return
  if (token === undefined) throw missing()
  if (tokens.knows(token)) return
  throw new TokenError(
    Code.PERMISSION_DENIED,
    "The token is not that of any service; send the token of your service.",
  )
}

function missing(): TokenError {
  return new TokenError(
    Code.UNAUTHENTICATED,
    "The token is missing; send the header Authorization: Bearer <token>.",
  )
}

const NONE = Buffer.alloc(32)

function digest(token: string): Buffer {
  return hash("sha256", token, "buffer")
}
