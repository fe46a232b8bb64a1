import { BinaryReader, WireType } from "@bufbuild/protobuf/wire"
import { LONGEST_NAME } from "../contract/service-name.ts"
import { RateLimitDescriptorSchema } from "../gen/envoy/extensions/common/ratelimit/v3/ratelimit_pb.ts"
import { type RateLimitRequest, RateLimitRequestSchema } from "../gen/envoy/service/ratelimit/v3/rls_pb.ts"
import { Code, invalidArgument, StatusError } from "../status-error.ts"

// By default a gateway forwards a request if it gets an error, so an error that a client can cause would bypass every
// limit. Only what the operator of the gateway configures leads to an error. A request that is too large is refused.

const MOST_DESCRIPTORS = 64
const MOST_ENTRIES = 32
/** Maximum fields of a message down to the key and value of each entry, with some to spare for later versions. */
const MOST_FIELDS = 2 * MOST_DESCRIPTORS * (3 * MOST_ENTRIES + 4)
/** A message of this many bytes is parsed without a look at its fields, because it cannot have many. */
const SHORT_BYTES = 4_096
/** No rule may have a field with a longer name. */
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

/** Whether a request has more descriptors or entries than are decided. */
export function hasTooMany({ descriptors }: RateLimitRequest): boolean {
  return (
    descriptors.length > MOST_DESCRIPTORS || descriptors.some(({ entries }) => entries.length > MOST_ENTRIES)
  )
}

/** The repeated fields from a request to its entries, with their bounds. */
const NESTED = [
  { field: RateLimitRequestSchema.field.descriptors.number, most: MOST_DESCRIPTORS },
  { field: RateLimitDescriptorSchema.field.entries.number, most: MOST_ENTRIES },
] as const

/** Whether a message has so many fields that parsing it would take long. Stops counting there. */
export function isTooManyToParse(message: Uint8Array): boolean {
  if (message.length <= SHORT_BYTES) return false
  const reader = new BinaryReader(message)
  let fields = 0
  /** Bytes of fields beside the descriptors and entries, whose own fields are not counted. */
  let others = 0
  const exceeds = (end: number, level: number): boolean => {
    const nested = NESTED[level]
    let count = 0
    while (reader.pos < end) {
      const [field, type] = reader.tag()
      // Skipping a group would loop over its fields. Proto3 has no groups.
      if (++fields > MOST_FIELDS || type === WireType.StartGroup) return true
      if (field === nested?.field && type === WireType.LengthDelimited) {
        if (++count > nested.most || exceeds(reader.uint32() + reader.pos, level + 1)) return true
        continue
      }
      const start = reader.pos
      reader.skip(type, field)
      if (nested !== undefined) others += reader.pos - start
      if (others > SHORT_BYTES) return true
    }
    return false
  }
  try {
    return exceeds(reader.len, 0)
  } catch {
    // The parser reports what is malformed.
    return false
  }
}
