import { LONGEST_NAME } from "../contract/service-name.ts"
import type { RateLimitRequest } from "../gen/envoy/service/ratelimit/v3/rls_pb.ts"
import { Code, invalidArgument, StatusError } from "../status-error.ts"

// By default, a gateway forwards a request after an error, so an error that a client can cause would bypass every
// limit. Only a mistake of the gateway's operator may cause an error. Refuse a request that is too large.

const MOST_DESCRIPTORS = 64
const MOST_ENTRIES = 32
/** Maximum characters of a key, because the name of a rule's field cannot be longer. */
const LONGEST_KEY = 256

/** Returns the service that the domain of a request names. Throws StatusError if the request cannot be decided. */
export function serviceAsked({ domain, descriptors }: RateLimitRequest): string {
  if (domain === "") throw wrong("domain", "is missing; set it to the name of the service")
  if (domain.length > LONGEST_NAME) throw wrong("domain", tooLong(domain, LONGEST_NAME))
  if (descriptors.length === 0) throw wrong("descriptors", "is empty; give at least one")
  descriptors.forEach(({ entries, isNegativeHits }, index) => {
    const at = `descriptors[${index}]`
    entries.forEach(({ key }, place) => {
      if (key.length <= LONGEST_KEY) return
      throw wrong(`${at}.entries[${place}].key`, tooLong(key, LONGEST_KEY))
    })
    if (isNegativeHits) {
      // A refund needs the original decision. The descriptor contains neither the time of that decision nor the
      // number of units that it took.
      const message = `${at}.is_negative_hits: is true, but refunds are not supported; leave it out.`
      throw new StatusError(Code.UNIMPLEMENTED, message)
    }
  })
  return domain
}

function wrong(field: string, description: string): StatusError {
  return invalidArgument({ field, description })
}

function tooLong({ length }: string, most: number): string {
  return `has ${length} characters; at most ${most} are accepted`
}

/** Whether a request contains too many descriptors or entries to be decided. */
export function hasTooMany({ descriptors }: RateLimitRequest): boolean {
  return (
    descriptors.length > MOST_DESCRIPTORS || descriptors.some(({ entries }) => entries.length > MOST_ENTRIES)
  )
}
