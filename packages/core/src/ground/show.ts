import { distance } from "fastest-levenshtein"
import { withoutCredentials } from "./credentials.ts"
import type { Problem } from "./errors.ts"

/** A problem before it is known where in the whole its object stands: `path` starts at that object. */
export interface MemberProblem {
  readonly path: readonly PropertyKey[]
  readonly message: string
  readonly accepted?: string
}

/** The problem with its place in the whole: `rules[1]` and `["match", "path"]` make `rules[1].match.path`. */
export function locate(place: string, { path, ...problem }: MemberProblem): Problem {
  return { path: path.reduce<string>(appendKey, place), ...problem }
}

/**
 * A value as a message shows it: as JSON where it has one, on one line, at most 60 characters. An object of a class is only
 * named, and a URL is without its password: what is given by mistake may be a client, and messages end in logs.
 */
export function show(value: unknown): string {
  const text = describe(value)
  const short = text.length > 60 ? `${text.slice(0, 59)}…` : text
  // Invisible characters could forge a line of a log or hide a part of it.
  return short.replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (char) => `\\u{${(char.codePointAt(0) as number).toString(16)}}`,
  )
}

/** `; did you mean "limit"?` when one of the names is close enough to be what was meant, else nothing. */
export function suggestion(name: string, names: readonly string[]): string {
  const meant = closest(name, names)
  return meant === undefined ? "" : `; did you mean "${meant}"?`
}

/** The name that was probably meant: without regard to case, "_" and "-", and with a typing error or two. */
export function closest(name: string, names: readonly string[]): string | undefined {
  // Comparing costs the product of the lengths, and what is written here may be megabytes long.
  if (name.length > 64) return undefined
  const given = bare(name)
  const scored = names.map((candidate) => ({ candidate, score: distance(given, bare(candidate)) }))
  const best = scored.sort((a, b) => a.score - b.score)[0]
  if (best !== undefined && best.score <= Math.ceil(given.length / 3)) return best.candidate
  return given.length < 4
    ? undefined
    : names.find((candidate) => bare(candidate).includes(given) || given.includes(bare(candidate)))
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
      // Clean the whole text: a password without the "@" that follows it could not be recognized.
      return JSON.stringify(withoutCredentials(value).slice(0, 60))
    case "function":
      return "a function"
    case "bigint":
      return `${value}n`
    case "symbol":
      // What a source has no value for comes as a symbol that says what it is: "binary of 3 bytes".
      return value.description ?? "a symbol"
    case "object":
      try {
        return withoutCredentials(classOf(value) ?? JSON.stringify(value) ?? "an object")
      } catch {
        // It is circular, too deep, or its own toJSON failed.
        return Array.isArray(value) ? "a list" : "an object"
      }
    default:
      return String(value)
  }
}

/** `an object of Redis`; undefined for a list, and for an object that a document or a literal may be. */
export function classOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined
  const name = (value.constructor as { readonly name?: unknown } | null | undefined)?.name
  return typeof name !== "string" || name === "" || name === "Object" ? undefined : `an object of ${name}`
}
