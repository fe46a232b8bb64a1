import { LONGEST_NAME } from "../contract/service-name.ts"
import type { RateLimitRequest } from "../gen/envoy/service/ratelimit/v3/rls_pb.ts"
import { Code, invalidArgument, StatusError } from "../status-error.ts"

// All of these are what the operator of a gateway writes. What its clients choose, the values, is bounded by the length of a
// message alone: a gateway that gets an error lets the request pass, unless it was told not to, so that an error would be a way
// around every limit.

const MOST_DESCRIPTORS = 64
const MOST_ENTRIES = 32
/** No field that a rule may name is as long. */
const LONGEST_KEY = 256

/** The service that a request's domain names. Throws StatusError where the request is none that can be decided. */
export function serviceAsked({ domain, descriptors }: RateLimitRequest): string {
  if (domain === "") throw wrong("domain", "is missing")
  if (domain.length > LONGEST_NAME) throw wrong("domain", `is longer than ${LONGEST_NAME} characters`)
  if (descriptors.length === 0) throw wrong("descriptors", "has none")
  if (descriptors.length > MOST_DESCRIPTORS)
    throw wrong("descriptors", tooMany(descriptors, MOST_DESCRIPTORS))
  descriptors.forEach(({ entries, isNegativeHits }, index) => {
    const at = `descriptors[${index}]`
    if (entries.length > MOST_ENTRIES) throw wrong(`${at}.entries`, tooMany(entries, MOST_ENTRIES))
    entries.forEach(({ key }, place) => {
      if (key.length <= LONGEST_KEY) return
      throw wrong(`${at}.entries[${place}].key`, `is longer than ${LONGEST_KEY} characters`)
    })
    if (isNegativeHits) {
      // What is given back has to be what was taken: the descriptor does not say when that was, nor how much.
      throw new StatusError(
        Code.UNIMPLEMENTED,
        `${at}.is_negative_hits: units cannot be given back by a descriptor.`,
      )
    }
  })
  return domain
}

function wrong(field: string, description: string): StatusError {
  return invalidArgument({ field, description })
}

function tooMany({ length }: { readonly length: number }, most: number): string {
  return `has ${length}; ${most} are accepted`
}
