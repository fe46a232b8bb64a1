import { withExactNumbers } from "@sluice/core"
import type { LiveVerdict } from "../log.ts"

/** An object in a JSON line. */
export type JsonObject = Readonly<Record<string, unknown>>

/**
 * Returns the object in a line; undefined if the line is not one JSON object. If `isExact` is true, numbers that
 * JavaScript cannot represent become strings, so that long ids stay distinct.
 */
export function parseObject(line: string, isExact = false): JsonObject | undefined {
  if (!line.trimStart().startsWith("{")) return undefined
  try {
    return objectOf(JSON.parse(isExact ? withExactNumbers(line) : line))
  } catch {
    return undefined
  }
}

/** Returns the value if it is an object and not an array. */
export function objectOf(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined
}

/** Returns the value if it is a non-empty string. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined
}

/** Returns the value if it is a number. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined
}

/** Returns a scalar as a string. An array with one scalar counts as this scalar. */
export function scalarOf(value: unknown): string | undefined {
  const only = Array.isArray(value) && value.length === 1 ? (value[0] as unknown) : value
  if (typeof only === "number" || typeof only === "boolean") return String(only)
  return textOf(only)
}

/**
 * Returns the value at a path such as "client.addr". Also finds a member whose own name contains dots. Only own
 * members are read.
 */
export function valueAt(object: JsonObject, path: string): unknown {
  if (Object.hasOwn(object, path)) return object[path]
  for (let dot = path.indexOf("."); dot !== -1; dot = path.indexOf(".", dot + 1)) {
    const inner = Object.hasOwn(object, path.slice(0, dot)) ? objectOf(object[path.slice(0, dot)]) : undefined
    const value = inner === undefined ? undefined : valueAt(inner, path.slice(dot + 1))
    if (value !== undefined) return value
  }
  return undefined
}

/** Returns the status in a JSON value; undefined unless it is a number or a string of three digits. */
export function statusIn(value: unknown): number | undefined {
  const status = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value
  return typeof status === "number" && Number.isInteger(status) && status >= 100 && status <= 999
    ? status
    : undefined
}

/** Returns what `logFields` of @sluice/core has added to the line. */
export function liveVerdict(line: JsonObject): LiveVerdict | undefined {
  const { policy, allowed, shadowed } = objectOf(line.ratelimit) ?? {}
  if (typeof policy !== "string" || typeof allowed !== "boolean") return undefined
  const names = Array.isArray(shadowed) ? shadowed.filter((name) => typeof name === "string") : []
  return names.length === 0 ? { allowed, policy } : { allowed, policy, shadowed: names }
}

/** Headers of a request in a JSON line. */
export interface JsonHeaders {
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** Names of the headers whose values a logger has hidden, in alphabetical order. */
  readonly hidden: readonly string[]
}

/** The strings that Caddy and pino write instead of a hidden value. */
const HIDDEN = new Set(["REDACTED", "[Redacted]"])

/** Returns headers with names in lower case. An array with one entry becomes this entry, as in Node. */
export function headersOf(value: JsonObject): JsonHeaders {
  const headers: Record<string, string | readonly string[]> = {}
  const hidden: string[] = []
  for (const [name, given] of Object.entries(value)) {
    const only = Array.isArray(given) && given.length === 1 ? (given[0] as unknown) : given
    const lower = name.toLowerCase()
    if (typeof only === "string") {
      if (HIDDEN.has(only)) hidden.push(lower)
      else headers[lower] = only
    } else if (Array.isArray(only) && only.every((each) => typeof each === "string")) headers[lower] = only
  }
  return { headers, hidden: hidden.sort() }
}
