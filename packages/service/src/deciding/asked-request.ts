import type { RequestFacts } from "@sluice/core"
import type { HeaderFields } from "@sluice/core/adapters"

/** The object in which a caller describes a request. */
export type KnownFacts = Readonly<Record<string, unknown>>

/** A request to decide. The guard stores its decision on this object. */
export interface AskedRequest {
  /** The description from the caller. */
  readonly known: KnownFacts
  /** The same data in the form that the built-in fields read. */
  readonly facts: RequestFacts
  /** How many requests it counts as: an integer, 0 or more. */
  readonly cost: number
  /** How many of each other unit it takes. Undefined if `cost` is the amount of every unit, as Envoy's hits are. */
  readonly units: ReadonlyMap<string, number> | undefined
  /** The entries of Envoy's descriptor. Absent if the request is not a descriptor. */
  readonly entries?: readonly {
    /** Name of the entry, as the operator of the gateway configured it. */
    readonly key: string
  }[]
}

/** The field that contains the keys of a descriptor's entries in order, such as "message_type,to_number". */
const DESCRIPTOR_KEYS = "descriptor_keys"

/** An empty description. */
export const NOTHING: KnownFacts = Object.freeze({})

const DEEPEST_PATH = 8

/**
 * Returns the facts for the built-in fields, which are read from the members with the same names. `cannotRelease` is
 * true if the caller will not say when the request has ended.
 */
export function factsOf(known: KnownFacts, cannotRelease = false): RequestFacts {
  const { ip, method, url, route, headers, query, cookies } = known
  return {
    method: text(method),
    url: text(url),
    route: text(route),
    headers: headersOf(headers),
    query,
    cookies,
    remoteAddress: text(ip),
    body: known,
    cannotRelease,
  }
}

/** Returns a function that reads how many of a unit a request takes. Undefined if the caller has not named the unit. */
export function amountOf(
  unit: string,
): (request: Pick<AskedRequest, "cost" | "units">) => number | undefined {
  return ({ cost, units }) => (unit === REQUESTS || units === undefined ? cost : units.get(unit))
}

/** The unit of rules without `counts`. */
export const REQUESTS = "requests"

/**
 * Returns a function that reads the member with this name. If no such member exists, the function reads the name as a
 * dotted path. The keys of a descriptor are joined only if a rule reads them.
 */
export function readerOf(
  name: string,
): (request: Pick<AskedRequest, "known" | "entries">) => string | undefined {
  if (name === DESCRIPTOR_KEYS) {
    return ({ known, entries }) =>
      entries === undefined ? (member(known, name) as string | undefined) : keysOf(entries)
  }
  const path = name.split(".")
  if (path.length === 1) return ({ known }) => scalar(member(known, name))
  return ({ known }) => {
    if (Object.hasOwn(known, name)) return scalar(known[name])
    return path.length > DEEPEST_PATH ? undefined : scalar(path.reduce(member, known as unknown))
  }
}

/**
 * Returns a string or number unchanged, and a boolean as a string, because callers may send booleans. Any other value
 * counts as missing. The core would warn that a field function returned an invalid value, but the service uses no
 * field functions.
 */
function scalar(value: unknown): string | undefined {
  if (typeof value === "boolean") return String(value)
  return typeof value === "string" || typeof value === "number" ? (value as string) : undefined
}

function keysOf(entries: NonNullable<AskedRequest["entries"]>): string {
  return entries.map(({ key }) => fieldOfKey(key)).join(",")
}

/** Returns the key of an entry in the form that rules use, with the names of header fields in lower case. */
export function fieldOfKey(key: string): string {
  return key.startsWith("header:") ? key.toLowerCase() : key
}

function member(holder: unknown, key: string): unknown {
  return typeof holder === "object" && holder !== null && Object.hasOwn(holder, key)
    ? (holder as KnownFacts)[key]
    : undefined
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined
}

/** Returns the header fields with lowercase names, as in Node. */
function headersOf(headers: unknown): HeaderFields | undefined {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) return undefined
  const fields: Record<string, string | readonly string[] | undefined> = Object.create(null)
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === "string" || Array.isArray(value)) fields[name.toLowerCase()] = value
  }
  return fields
}
