import * as v from "valibot"
import { record, type Schema, says, strict } from "../../ground/shape.ts"
import { compilePath, PATH_ACCEPTED } from "../matching/match.ts"
import type { RuleMatch, StorableRule } from "../rule.ts"
import { canonicalField, fieldName, TOKEN } from "./field-name.ts"

/** A value of a field. */
export const VALUE: string = says("a value", "a non-empty string")
const VALUES = says("a list of values", "a list of non-empty strings")
/** A list of values of a field. */
export const values: v.GenericSchema<string[]> = v.array(
  v.pipe(v.string(VALUE), v.minLength(1, VALUE)),
  VALUES,
)

const METHOD = says("an HTTP method", 'a name such as "GET" or "POST"')
const METHODS = says("a list of methods", 'a list such as ["GET", "POST"]')
const PATH = says("a path pattern", PATH_ACCEPTED)
const isFunction = (value: unknown): boolean => typeof value === "function"
const when = v.custom(isFunction, says("a function", "(request) => boolean"))

/** The shape of a match in documents. */
export const storedMatch = strict("a match", {
  methods: v.optional(
    v.pipe(v.array(v.pipe(v.string(METHOD), v.regex(TOKEN, METHOD)), METHODS), v.minLength(1, METHODS)),
  ),
  path: v.optional(v.pipe(v.string(PATH), v.check(isPathPattern, PATH))),
  fields: v.optional(
    record(
      fieldName,
      v.pipe(values, v.minLength(1, VALUES)),
      says("an object of fields", 'an object such as {"plan": ["free", "trial"]}'),
    ),
  ),
})
const codeMatch = strict("a match", { ...storedMatch.entries, when: v.optional(when) })
/** The shape of a match in code. */
export const matchShape: Schema = v.lazy((value) => (isFunction(value) ? when : codeMatch))

function isPathPattern(path: string): boolean {
  // Limit the length, because compiling needs time and stack space in proportion to the length. No real path is
  // longer.
  if (!path.startsWith("/") || path.length > 1024) return false
  try {
    compilePath(path)
    return true
  } catch {
    return false
  }
}

/** Returns a copy of a valid match, with methods in upper case and canonical fields. */
export function fillMatch(match: NonNullable<StorableRule["match"]>): RuleMatch {
  const { methods, path, fields, when }: RuleMatch = typeof match === "function" ? { when: match } : match
  return {
    ...(when !== undefined && { when }),
    ...(methods !== undefined && { methods: [...new Set(methods.map((method) => method.toUpperCase()))] }),
    ...(path !== undefined && { path }),
    ...(fields !== undefined && {
      fields: Object.fromEntries(
        Object.entries(fields).map(([field, values]) => [canonicalField(field), [...values]]),
      ),
    }),
  }
}
