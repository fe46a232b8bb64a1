import type { RequestFacts } from "@sluice/core"
import type { AskedRequest, KnownFacts } from "../deciding/asked-request.ts"
import {
  type RateLimitDescriptor_Entry as Entry,
  RateLimitDescriptor_EntrySchema as EntrySchema,
} from "../gen/envoy/extensions/common/ratelimit/v3/ratelimit_pb.ts"
import type { RateLimitRequest } from "../gen/envoy/service/ratelimit/v3/rls_pb.ts"

// Envoy sends the bytes of a client's header fields as they came, UTF-8 or not: https://github.com/envoyproxy/envoy/issues/5141. A
// message that is refused for them is an error, and Envoy lets pass what it gets one for: a byte would be a way around every limit.
// The feature of editions for it, `utf8_validation = NONE`, is not read by every tool that reads proto3.
Object.assign(EntrySchema.field.value, { utf8Validation: false })

/** What is asked about one request of a client. */
export interface AskedDescriptors {
  /** One for each descriptor, in order. Its cost is 0 where nothing is to be taken, and it is only asked whether a unit is left. */
  readonly descriptors: readonly AskedRequest[]
  /**
   * The whole request, for the rules without a field: all that any of its descriptors says. Undefined where there are no such
   * rules, and where the only descriptor stands for it, so that all is decided together.
   */
  readonly whole: AskedRequest | undefined
}

/** Values of the entries whose keys are fields with a prefix, `header:x-api-key`, by prefix and name. */
type Prefixed = { [Prefix in "header" | "query" | "cookie" | "param"]?: Record<string, string> }

const PREFIXED = /^(header|query|cookie|param):(.+)$/s

/** What rules without a field need. */
const ALL = "service"
const ONLY_ALL: ReadonlySet<string> = new Set([ALL])

/**
 * What a request of Envoy's asks. Where a descriptor says nothing of its hits those of the request are meant; 0 there is what
 * proto3 has for nothing, and 1. A count that no number holds exactly is the largest that one does, which no limit admits.
 * `countsAll` says that there are rules without a field.
 */
export function readDescriptors(
  { descriptors, hitsAddend }: RateLimitRequest,
  countsAll: boolean,
): AskedDescriptors {
  const cost = hitsAddend === 0 ? 1 : hitsAddend
  const costs = descriptors.map(({ hitsAddend: own }) => (own === undefined ? cost : exact(own)))
  const standsForAll = countsAll && descriptors.length === 1 && costs[0] === cost
  const asked = descriptors.map(({ entries }, index) => {
    const { known, facts, fields } = readEntries(entries)
    if (standsForAll) fields.add(ALL)
    return { known, facts: { ...facts, onlyFields: fields }, cost: costs[index] as number }
  })
  if (!countsAll || standsForAll) return { descriptors: asked, whole: undefined }
  const { known, facts } = readEntries(descriptors.flatMap(({ entries }) => entries))
  return { descriptors: asked, whole: { known, facts: { ...facts, onlyFields: ONLY_ALL }, cost } }
}

function exact(hits: bigint): number {
  return Math.min(Number(hits), Number.MAX_SAFE_INTEGER)
}

/** What entries say, and of which fields. Of entries with the same key the first one counts. */
function readEntries(entries: readonly Entry[]): {
  readonly known: KnownFacts
  readonly facts: RequestFacts
  readonly fields: Set<string>
} {
  // A key may be any text, "__proto__" too.
  const known: Record<string, string> = Object.create(null)
  const prefixed: Prefixed = {}
  const fields = new Set<string>()
  for (const { key, value } of entries) {
    const field = fieldOf(key)
    if (fields.has(field)) continue
    fields.add(field)
    known[key] = value
    const [, prefix, name] = PREFIXED.exec(field) ?? []
    if (name === undefined) continue
    const holder = prefixed[prefix as keyof Prefixed] ?? Object.create(null)
    holder[name] = value
    prefixed[prefix as keyof Prefixed] = holder
  }
  // Envoy's word for the client's address.
  if (fields.has("remote_address")) fields.add("ip")
  // No rule has a field of this name, and a key of an operator's choosing is not to stand for all.
  fields.delete(ALL)
  return { known, facts: factsOf(known, prefixed), fields }
}

/** The key as a rule writes it: names of header fields in lower case. */
function fieldOf(key: string): string {
  return key.startsWith("header:") ? key.toLowerCase() : key
}

function factsOf(
  known: Readonly<Record<string, string>>,
  { header, query, cookie, param }: Prefixed,
): RequestFacts {
  const { method, path, route, remote_address, ip = remote_address } = known
  return {
    method,
    url: path,
    route,
    headers: header,
    query,
    cookies: cookie,
    params: param,
    body: known,
    remoteAddress: ip,
  }
}
