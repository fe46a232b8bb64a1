import { z } from "zod"
import { DURATION_ACCEPTED, parseDuration } from "../../ground/duration.ts"
import { choice, type Says, says, strict } from "../../ground/shape.ts"
import { compilePath, PATH_ACCEPTED } from "../matching/match.ts"
import { canonicalField, FIELD_ACCEPTED, fieldMistake, TOKEN } from "./field-name.ts"

/** What a count may be. */
export const POSITIVE: string = `a positive whole number up to ${Number.MAX_SAFE_INTEGER}`
/** What a rule's name may be. */
export const NAME_ACCEPTED = '1 to 64 printable ASCII characters without " and \\'
/** Names are put into header fields as they are (RFC 9651 section 3.3.3), so none may need escaping. */
export const NAME: RegExp = /^[\x20!\x23-\x5b\x5d-\x7e]{1,64}$/

const VALUES = says("a list of values", "a list of non-empty texts")
const VALUE = says("a value", "a non-empty text")
const values: z.ZodArray<z.ZodString> = z.array(z.string(VALUE).min(1, VALUE), VALUES)

const FIELD_AND_FUNCTION =
  'a name, and in "fields" what reads it: { field: "user_id", fields: { user_id: (request) => … } }'
/** Who gives a function counts by what it yields, as other rate limiters have it. */
const hasFunction = (value: unknown): boolean =>
  [value, ...Object.values(value ?? {})].some((each) => typeof each === "function")
const FIELDS = {
  error: ({ input }: { readonly input?: unknown }): string =>
    says("a field or a list of fields", hasFunction(input) ? FIELD_AND_FUNCTION : FIELD_ACCEPTED).error,
}
const fieldNames: z.ZodType<string | string[]> = z
  .union([z.string(), z.array(z.string(FIELDS)).min(1, FIELDS)], FIELDS)
  .superRefine((value, context) => {
    const names = typeof value === "string" ? [value] : value
    for (const [index, name] of names.entries()) {
      const path = typeof value === "string" ? [] : [index]
      const mistake = fieldMistake(name) ?? combinationMistake(names, index)
      if (mistake !== undefined) {
        context.addIssue({ code: "custom", path, message: says(mistake.noun, mistake.accepted).error })
      }
    }
  })

const BUCKETS = says("a number of sub-windows", "a whole number from 2 to 360")
const BURST = says("a burst", POSITIVE)
const REFUSALS = says("a number of refusals", POSITIVE)
const WINDOW = says("a window", DURATION_ACCEPTED)
const durationOf = (said: Says): z.ZodUnion<readonly [z.ZodInt, z.ZodString]> =>
  z
    .union([z.int(said), z.string()], said)
    .refine((value) => parseDuration(value) !== undefined, { ...said, abort: true })
const duration = durationOf(says("a duration", DURATION_ACCEPTED))
const methodName = says("an HTTP method", 'a token such as "GET" or "POST"')
const matchFields = z.record(
  z.string(says("a field", FIELD_ACCEPTED)).superRefine((name, context) => {
    const mistake = fieldMistake(name)
    if (mistake !== undefined) {
      context.addIssue({ code: "custom", message: says(mistake.noun, mistake.accepted).error })
    }
  }),
  values.min(1, VALUES),
  says("an object of fields", 'an object such as {"plan": ["free", "trial"]}'),
)

/** The schemas of a rule's members, which are the same in code and in documents. Without a transformation in any. */
export const member = {
  name: z.string(says("a name", NAME_ACCEPTED)).regex(NAME, says("a name", NAME_ACCEPTED)),
  limit: z.int(says("a limit", POSITIVE)).min(1, says("a limit", POSITIVE)),
  window: durationOf(WINDOW),
  field: fieldNames,
  onMissing: choice("a choice for a missing field", ["ip", "skip", "deny", "shared"]),
  algorithm: choice("an algorithm", [
    "sliding-window",
    "sliding-window-strict",
    "sliding-log",
    "fixed-window",
    "token-bucket",
    "leaky-bucket",
  ]),
  align: choice("an alignment", ["epoch", "first-hit"]),
  buckets: z.int(BUCKETS).min(2, BUCKETS).max(360, BUCKETS),
  burst: z.int(BURST).min(1, BURST),
  refill: choice("a refill", ["continuous", "periodic"]),
  countRejected: z.boolean(says("a boolean", "true or false")),
  penalty: strict("a penalty", {
    refusals: z.int(REFUSALS).min(1, REFUSALS),
    within: duration.optional(),
    for: duration,
  }),
  cost: z.int(says("a cost", POSITIVE)).min(1, says("a cost", POSITIVE)),
  match: strict("a match", {
    methods: z
      .array(
        z.string(methodName).regex(TOKEN, methodName),
        says("a list of methods", 'a list such as ["GET", "POST"]'),
      )
      .min(1, says("a list of methods", 'a list such as ["GET", "POST"]'))
      .optional(),
    path: z
      .string(says("a path pattern", PATH_ACCEPTED))
      .refine(isPathPattern, says("a path pattern", PATH_ACCEPTED))
      .optional(),
    fields: matchFields.optional(),
  }),
  allow: values,
  deny: values,
  rejectionMessage: z
    .string(says("a rejection message", "a text of 1 to 1024 characters"))
    .min(1, says("a rejection message", "a text of 1 to 1024 characters"))
    .max(1024, says("a rejection message", "a text of 1 to 1024 characters")),
  shadow: z.boolean(says("a boolean", "true or false")),
  onStoreFailure: choice("a choice for a store failure", ["local", "allow", "deny"]),
} as const

function combinationMistake(
  names: readonly string[],
  index: number,
): { noun: string; accepted: string } | undefined {
  const [name, ...earlier] = names
    .slice(0, index + 1)
    .map(canonicalField)
    .reverse()
  if (names.length > 1 && name === "service") {
    return {
      noun: "a part of a combination",
      accepted: 'fields of a request; "service", the whole, only by itself',
    }
  }
  if (!earlier.includes(name as string)) return undefined
  return { noun: "a new part of the combination", accepted: "each field once" }
}

function isPathPattern(path: string): boolean {
  // A longer one is no path that anyone writes, and compiling takes time and stack in proportion.
  if (!path.startsWith("/") || path.length > 1024) return false
  try {
    compilePath(path)
    return true
  } catch {
    return false
  }
}
