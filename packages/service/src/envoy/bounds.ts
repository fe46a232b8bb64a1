import { LONGEST_NAME } from "../contract/service-name.ts"
import type { RateLimitRequest } from "../gen/envoy/service/ratelimit/v3/rls_pb.ts"
import { Code, invalidArgument, StatusError } from "../status-error.ts"

// These bounds apply only to what the operator of a gateway configures. Values, which clients choose, are only bounded
// by the length of a message. By default a gateway forwards a request if it gets an error, so an error caused by a
// value would bypass every limit.

const MOST_DESCRIPTORS = 64
const MOST_ENTRIES = 32
/** No rule may have a field with a longer name. */
const LONGEST_KEY = 256

/** Returns the service that the domain of a request names. Throws StatusError if the request cannot be decided. */
export function serviceAsked({ domain, descriptors }: RateLimitRequest): string {
  if (domain === "") throw wrong("domain", "is missing; set it to the name of the service")
  if (domain.length > LONGEST_NAME) throw wrong("domain", tooLong(domain, LONGEST_NAME))
  if (descriptors.length === 0) throw wrong("descriptors", "is empty; give at least one")
  if (descriptors.length > MOST_DESCRIPTORS)
    throw wrong("descriptors", tooMany(descriptors, MOST_DESCRIPTORS))
  descriptors.forEach(({ entries, isNegativeHits }, index) => {
    const at = `descriptors[${index}]`
    if (entries.length > MOST_ENTRIES) throw wrong(`${at}.entries`, tooMany(entries, MOST_ENTRIES))
    entries.forEach(({ key }, place) => {
      if (key.length <= LONGEST_KEY) return
      throw wrong(`${at}.entries[${place}].key`, tooLong(key, LONGEST_KEY))
    })
    if (isNegativeHits) {
      // A refund needs the original decision. The descriptor specifies neither when the units were taken nor how many.
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

function tooMany({ length }: { readonly length: number }, most: number): string {
  return `has ${length}; at most ${most} are accepted`
}
