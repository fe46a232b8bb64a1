import type { RequestFacts } from "@sluice/core"
import { type AskedRequest, fieldOfKey, type KnownFacts } from "../deciding/asked-request.ts"
import {
  type RateLimitDescriptor_Entry as Entry,
  RateLimitDescriptor_EntrySchema as EntrySchema,
} from "../gen/envoy/extensions/common/ratelimit/v3/ratelimit_pb.ts"
import type { RateLimitRequest } from "../gen/envoy/service/ratelimit/v3/rls_pb.ts"

// Accept invalid UTF-8 in values. Envoy sends the bytes of a client's header fields unchanged:
// https://github.com/envoyproxy/envoy/issues/5141. If such a message caused an error, a single byte would bypass
// every limit, because Envoy forwards a request after an error.
//
// The editions feature `utf8_validation = NONE` is not used, because not every tool for proto3 can read it.
Object.assign(EntrySchema.field.value, { utf8Validation: false })

/** The decisions to make for one request of a client. */
export interface AskedDescriptors {
  /**
   * One request for each descriptor, in order. If the cost is 0, no units are taken, and the response reports whether
   * one unit is available.
   */
  readonly descriptors: readonly AskedRequest[]
  /**
   * The whole request, with the entries of all descriptors, for the rules without a field. Undefined if there are no
   * such rules. Also undefined if the only descriptor can represent the whole request, so that all rules are checked
   * together.
   */
  readonly whole: AskedRequest | undefined
}

/** Values of entries whose keys have a prefix, such as `header:x-api-key`. Grouped by prefix, then keyed by name. */
type Prefixed = { [Prefix in "header" | "query" | "cookie" | "param"]?: Record<string, string> }

const PREFIXED = /^(header|query|cookie|param):(.+)$/s

/** The name in `onlyFields` that selects the rules without a field. */
const ALL = "service"
const ONLY_ALL: ReadonlySet<string> = new Set([ALL])

/**
 * Returns the decisions to make for a request from Envoy. `countsAll` is true if the service has rules without a
 * field.
 *
 * A descriptor without hits uses the hits of the request. In the request, 0 means absent (proto3) and counts as 1.
 * Hits that are not a safe integer become the largest safe integer, which no limit admits.
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
    return {
      known,
      facts: { ...facts, onlyFields: fields },
      cost: costs[index] as number,
      units: undefined,
      entries,
    }
  })
  if (!countsAll || standsForAll) return { descriptors: asked, whole: undefined }
  const { known, facts } = readEntries(descriptors.flatMap(({ entries }) => entries))
  return {
    descriptors: asked,
    whole: { known, facts: { ...facts, onlyFields: ONLY_ALL }, cost, units: undefined },
  }
}

function exact(hits: bigint): number {
  return Math.min(Number(hits), Number.MAX_SAFE_INTEGER)
}

/** Returns the values, facts and fields of entries. If several entries have the same key, uses the first entry. */
function readEntries(entries: readonly Entry[]): {
  readonly known: KnownFacts
  readonly facts: RequestFacts
  readonly fields: Set<string>
} {
  // A key may be any string, even "__proto__".
  const known: Record<string, string> = Object.create(null)
  const prefixed: Prefixed = {}
  const fields = new Set<string>()
  for (const { key, value } of entries) {
    const field = fieldOfKey(key)
    if (fields.has(field)) continue
    fields.add(field)
    known[key] = value
    const [, prefix, name] = PREFIXED.exec(field) ?? []
    if (name === undefined) continue
    const holder = prefixed[prefix as keyof Prefixed] ?? Object.create(null)
    holder[name] = value
    prefixed[prefix as keyof Prefixed] = holder
  }
  // `remote_address` is Envoy's name for the client's address.
  if (fields.has("remote_address")) fields.add("ip")
  // No rule has a field named "service", and a key that an operator chose must not select the rules without a field.
  fields.delete(ALL)
  return { known, facts: factsOf(known, prefixed), fields }
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
    // Envoy's protocol has no call at the end of a request.
    cannotRelease: true,
  }
}
