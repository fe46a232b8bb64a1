import crypto, { timingSafeEqual } from "node:crypto"
import { Code, TokenError } from "../status-error.ts"

/** The tokens of services. A caller needs a token to change rules or to ask for decisions. */
export interface Tokens {
  /** Whether there are no tokens. Without tokens, callers cannot be identified. */
  readonly isEmpty: boolean
  /**
   * Whether the token belongs to this service, or to all services. The check takes the same time for every wrong
   * token.
   */
  allows(token: string, service: string): boolean
  /** Whether the token belongs to any service. */
  knows(token: string): boolean
  /**
   * Returns a signature of a text under the token of the service, or else under the token of all services. Undefined if
   * neither exists.
   */
  sign(text: string, service: string): string | undefined
}

/** The name that represents all services. */
const EVERY = "*"

/**
 * Creates tokens from a map of service to token. The token of "*" is valid for every service. Only digests of the
 * tokens are stored.
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
  // Look up each call's token by its digest, because the duration of such a lookup reveals nothing about the token.
  const known = new Set([...digests.values()].map((each) => each.toString("latin1")))
  const isOf = (service: string, given: Buffer): boolean => {
    const known = digests.get(service)
    // Always compare, so that the response time does not reveal which services have a token.
    return timingSafeEqual(known ?? NONE, given) && known !== undefined
  }
  return {
    isEmpty: digests.size === 0,
    allows(token, service) {
      const given = digest(token)
      const isOwn = isOf(service, given)
      return isOf(EVERY, given) || isOwn
    },
    knows: (token) => known.has(digest(token).toString("latin1")),
    sign(text, service) {
      const key = digests.get(service) ?? digests.get(EVERY)
      if (key === undefined) return undefined
      const mac = crypto.createHmac("sha256", key).update(`sluice reservation ${text}`).digest()
      return mac.toString("base64url", 0, SIGNATURE_BYTES)
    },
  }
}

/** Throws StatusError if tokens are configured and `token` does not belong to the service. */
export function requireTokenOf(service: string, tokens: Tokens, token: string | undefined): void {
  if (tokens.isEmpty) return
  if (token === undefined) throw missing()
  if (tokens.allows(token, service)) return
  throw new TokenError(
    Code.PERMISSION_DENIED,
    `The token is not valid for service ${JSON.stringify(service)}; send the token of this service.`,
  )
}

/** Throws StatusError if tokens are configured and `token` does not belong to any service. */
export function requireKnownToken(tokens: Tokens, token: string | undefined): void {
  if (tokens.isEmpty) return
  if (token === undefined) throw missing()
  if (tokens.knows(token)) return
  throw new TokenError(
    Code.PERMISSION_DENIED,
    "The token is not valid for any service; send the token of your service.",
  )
}

function missing(): TokenError {
  return new TokenError(
    Code.UNAUTHENTICATED,
    "The token is missing; send the header Authorization: Bearer <token>.",
  )
}

const NONE = Buffer.alloc(32)
const SIGNATURE_BYTES = 16

function digest(token: string): Buffer {
  return crypto.hash("sha256", token, "buffer")
}
