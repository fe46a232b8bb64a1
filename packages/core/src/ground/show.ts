import { distance } from "fastest-levenshtein"
import { withoutCredentials } from "./credentials.ts"
import type { Problem } from "./errors.ts"

/** A problem whose `path` starts at the object itself, because the place of that object is not known yet. */
export interface MemberProblem {
  /** The keys that lead from the object to the value. */
  readonly path: readonly PropertyKey[]
  /** What is wrong. */
  readonly message: string
  /** What is accepted instead. */
  readonly accepted?: string
  /** The rule that has the problem. */
  readonly rule?: string
}

/** Returns the problem with its full path: `rules[1]` and `["match", "path"]` become `rules[1].match.path`. */
export function locate(place: string, { path, ...problem }: MemberProblem): Problem {
  return { path: path.reduce<string>(appendKey, place), ...problem }
}

/**
 * Returns a value as a string for a message: JSON if possible, on one line, at most 60 characters. For an instance of
 * a class, returns only the name of the class, and removes passwords from URLs. This matters because the value may be
 * a Redis client passed by mistake, and messages are logged.
 */
export function show(value: unknown): string {
  const text = describe(value)
  const short = text.length > 60 ? `${text.slice(0, 59)}…` : text
  // Escape invisible characters, which could forge a log line or hide a part of it.
  return short.replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (char) => `\\u{${(char.codePointAt(0) as number).toString(16)}}`,
  )
}

/** Returns a suggestion, such as `; did you mean "limit"?`, or an empty string if none of the names is close enough. */
export function suggestion(name: string, names: readonly string[]): string {
  const meant = closest(name, names)
  return meant === undefined ? "" : `; did you mean "${meant}"?`
}

/** Returns the name that needs the fewest changes to become the given name, even if it needs many changes. */
export function nearest(name: string, names: readonly string[]): string {
  return scored(name.slice(0, 64), names)[0]?.candidate as string
}

/** Returns the name that was probably meant. Ignores case, "_" and "-", and allows a typo or two. */
export function closest(name: string, names: readonly string[]): string | undefined {
  // Do not compare a long name. The time grows with the product of both lengths, and the given name may be megabytes
  // long.
  if (name.length > 64) return undefined
  const given = bare(name)
  const best = scored(name, names)[0]
  if (best !== undefined && best.score <= Math.ceil(given.length / 3)) return best.candidate
  return given.length < 4
    ? undefined
    : names.find((candidate) => bare(candidate).includes(given) || given.includes(bare(candidate)))
}

function scored(name: string, names: readonly string[]): { candidate: string; score: number }[] {
  return names
    .map((candidate) => ({ candidate, score: distance(bare(name), bare(candidate)) }))
    .sort((a, b) => a.score - b.score)
}

function bare(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, "")
}

function appendKey(place: string, key: PropertyKey): string {
  if (typeof key === "number") return `${place}[${key}]`
  const name = String(key)
  if (!/^[\w$]{1,64}$/.test(name)) return `${place}[${show(name)}]`
  return place === "" ? name : `${place}.${name}`
}

function describe(value: unknown): string {
  switch (typeof value) {
    case "string":
      // Clean the whole text before cutting it, because a password is recognized only by the "@" after it.
      return JSON.stringify(withoutCredentials(value).slice(0, 60))
    case "function":
      return "a function"
    case "bigint":
      return `${value}n`
    case "symbol":
      // A rule source represents an unsupported value by a symbol that describes it: "binary of 3 bytes".
      return value.description ?? "a symbol"
    case "object":
      try {
        return withoutCredentials(classOf(value) ?? JSON.stringify(value) ?? "an object")
      } catch {
        // The value is circular or nested too deeply, or its own toJSON failed.
        return Array.isArray(value) ? "a list" : "an object"
      }
    default:
      return String(value)
  }
}

/**
 * Returns a string such as `an instance of Redis`, or undefined for an array and for an object from a document or a
 * literal.
 */
export function classOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined
  const name = (value.constructor as { readonly name?: unknown } | null | undefined)?.name
  return typeof name !== "string" || name === "" || name === "Object" ? undefined : `an instance of ${name}`
}
