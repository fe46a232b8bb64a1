import * as v from "valibot"
import { type Schema, says } from "../../ground/shape.ts"
import { closest } from "../../ground/show.ts"

const BUILT_IN = ["ip", "service", "method", "route"] as const
const PREFIXES = ["header", "query", "body", "param", "cookie"] as const
type Prefix = (typeof PREFIXES)[number]

/** The accepted forms of a rule's `field`, for error messages. */
export const FIELD_ACCEPTED =
  '"ip", "service", "method", "route", "header:NAME", "query:NAME", "body:DOTTED.PATH", "param:NAME", "cookie:NAME", ' +
  'or your own name made of letters, digits, "_", "-" and "."'

/** Matches HTTP tokens (RFC 9110 section 5.6.2): the names of methods, header fields and cookies. */
export const TOKEN: RegExp = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/

/** Maximum number of levels in a path into the body. */
const MAX_BODY_LEVELS = 8
const SEGMENT = /^[^\p{C}.]{1,128}$/u
const ANY_NAME = /^\P{C}{1,128}$/u

const isToken = (name: string): boolean => TOKEN.test(name)
const isName = (name: string): boolean => ANY_NAME.test(name)
const isBodyPath = (path: string): boolean => {
  const names = path.split(".")
  return names.length <= MAX_BODY_LEVELS && names.every((name) => SEGMENT.test(name))
}

const NAMES: Readonly<
  Record<Prefix, { readonly test: (name: string) => boolean; readonly accepted: string }>
> = {
  header: { test: isToken, accepted: "header:NAME with the name of a header, such as header:x-api-key" },
  cookie: { test: isToken, accepted: "cookie:NAME with the name of a cookie, such as cookie:session" },
  query: { test: isName, accepted: "query:NAME with the name of a query parameter, such as query:key" },
  param: { test: isName, accepted: "param:NAME with the name of a route parameter, such as param:id" },
  body: {
    test: isBodyPath,
    accepted: `body:PATH with 1 to ${MAX_BODY_LEVELS} names separated by dots, such as body:user.id`,
  },
}

/**
 * Returns the field that the author of a name such as "body.email" or "req.headers.host" probably meant; undefined if
 * there is no such field.
 */
export function meantField(name: string): string | undefined {
  const [, prefix, key = ""] =
    /^(?:req(?:uest)?\.)?(header|query|body|param|cookie)s?\.(.+)$/.exec(name) ?? []
  const field = `${prefix}:${key}`
  return prefix !== undefined && fieldMistake(field) === undefined ? field : undefined
}

/** The reason why a string is not a field: a noun for "is not …", and the accepted forms. */
export type FieldMistake = { readonly noun: string; readonly accepted: string }

/**
 * Returns the reason why a string is not a field, with the accepted forms. Returns undefined if the string is a
 * field.
 */
export function fieldMistake(text: string): FieldMistake | undefined {
  const colon = text.indexOf(":")
  if (colon === -1) return bareNameMistake(text)
  const prefix = PREFIXES.find((known) => known === text.slice(0, colon))
  if (prefix === undefined) {
    const meant = closest(text.slice(0, colon), PREFIXES)
    const noun = meant === undefined ? "a field" : `a field; did you mean "${meant}:"?`
    return { noun, accepted: FIELD_ACCEPTED }
  }
  const { test, accepted } = NAMES[prefix]
  return test(text.slice(colon + 1)) ? undefined : { noun: "a field", accepted }
}

/**
 * Returns the canonical spelling of a field. Header names are changed to lower case (RFC 9110 section 5.1), and other
 * fields are unchanged.
 */
export function canonicalField(field: string): string {
  return field.startsWith("header:") ? field.toLowerCase() : field
}

function bareNameMistake(text: string): FieldMistake | undefined {
  // Without this check, "IP" would be a field of the app's own, which is read from the client's data.
  const builtIn = BUILT_IN.find((name) => name !== text && name === text.toLowerCase())
  if (builtIn !== undefined) return { noun: `a field; did you mean "${builtIn}"?`, accepted: FIELD_ACCEPTED }
  const prefix = PREFIXES.find((name) => name === text)
  if (prefix !== undefined) return { noun: "a field", accepted: NAMES[prefix].accepted }
  if (/^[\w.-]{1,64}$/.test(text) && text !== "__proto__") return undefined
  return { noun: "a field", accepted: FIELD_ACCEPTED }
}

const FIELD_AND_FUNCTION =
  'a name, with the function that reads it in "fields": { field: "user_id", fields: { user_id: (request) => … } }'
/**
 * True if a value contains a function. Its author tries to count by the function's result, as other rate limiters
 * allow.
 */
const hasFunction = (value: unknown): boolean =>
  [value, ...Object.values(value ?? {})].some((each) => typeof each === "function")
const FIELDS = ({ input }: { readonly input: unknown }): string =>
  says("a field or a list of fields", hasFunction(input) ? FIELD_AND_FUNCTION : FIELD_ACCEPTED)

/** The name of one field. */
export const fieldName: v.GenericSchema<string> = v.pipe(
  v.string(says("a field", FIELD_ACCEPTED)),
  v.rawCheck(({ dataset, addIssue }) => {
    const mistake = dataset.typed ? fieldMistake(dataset.value) : undefined
    if (mistake !== undefined) addIssue({ message: says(mistake.noun, mistake.accepted) })
  }),
)

/** A rule's `field`: a name, or a list of names that are combined. */
export const fieldNames: Schema = v.pipe(
  v.union([v.string(), v.pipe(v.array(v.string()), v.minLength(1, FIELDS))], FIELDS),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const { value } = dataset
    const names = typeof value === "string" ? [value] : value
    for (const [index, name] of names.entries()) {
      const mistake = fieldMistake(name) ?? combinationMistake(names, index)
      if (mistake === undefined) continue
      const message = says(mistake.noun, mistake.accepted)
      const path = { type: "array", origin: "value", input: names, key: index, value: name } as const
      addIssue(typeof value === "string" ? { message } : { message, input: name, path: [path] })
    }
  }),
)

function combinationMistake(names: readonly string[], index: number): FieldMistake | undefined {
  const [name, ...earlier] = names
    .slice(0, index + 1)
    .map(canonicalField)
    .reverse()
  if (names.length > 1 && name === "service") {
    return { noun: "a field that can be combined", accepted: 'fields of a request, or "service" alone' }
  }
  if (!earlier.includes(name as string)) return undefined
  return { noun: "unique in the combination", accepted: "each field once" }
}
