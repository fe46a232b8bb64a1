import type { HeaderFields, RequestFacts } from "@sluice/core"

/** What a caller knows of the request that it asks about: an object of its own making. */
export type KnownFacts = Readonly<Record<string, unknown>>

/** A request that is asked about. The guard keeps on it what it has decided. */
export interface AskedRequest {
  /** What the caller says of it. */
  readonly known: KnownFacts
  /** The same as the built-in fields read it. */
  readonly facts: RequestFacts
  /** Units, a whole number from 0 up. */
  readonly cost: number
}

/** Nothing is known of it. */
export const NOTHING: KnownFacts = Object.freeze({})

const DEEPEST_PATH = 8

/** What serves the built-in fields: the members of their names. */
export function factsOf(known: KnownFacts): RequestFacts {
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
  }
}

/** What reads a field by its name: the member of that name, else the dotted path. */
export function readerOf(name: string): (request: Pick<AskedRequest, "known">) => string | undefined {
  const path = name.split(".")
  // What is no scalar is missing: the core sees to that.
  if (path.length === 1) return ({ known }) => member(known, name) as string | undefined
  return ({ known }) => {
    if (Object.hasOwn(known, name)) return known[name] as string
    return path.length > DEEPEST_PATH ? undefined : (path.reduce(member, known as unknown) as string)
  }
}

function member(holder: unknown, key: string): unknown {
  return typeof holder === "object" && holder !== null && Object.hasOwn(holder, key)
    ? (holder as KnownFacts)[key]
    : undefined
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined
}

/** With names in lower case, as Node has them. */
function headersOf(headers: unknown): HeaderFields | undefined {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) return undefined
  const fields: Record<string, string | readonly string[] | undefined> = Object.create(null)
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === "string" || Array.isArray(value)) fields[name.toLowerCase()] = value
  }
  return fields
}
