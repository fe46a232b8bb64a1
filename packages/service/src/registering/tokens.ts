import { createHash, timingSafeEqual } from "node:crypto"

/** Who may change the rules of which services. */
export interface Tokens {
  /** Whether there is any: without one nobody can be told apart. */
  readonly isEmpty: boolean
  /** Whether this token may change the rules of this service. Takes the same time whichever token is wrong. */
  allows(token: string, service: string): boolean
}

/** The service that stands for all of them. */
const EVERY = "*"

/**
 * Tokens by service; the one of "*" is for every service. Only their digests are kept.
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
  }
}

const NONE = Buffer.alloc(32)

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest()
}
