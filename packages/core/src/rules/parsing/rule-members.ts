import * as v from "valibot"
import { ALGORITHM_NAMES } from "../../algorithms/kinds.ts"
import { DURATION_ACCEPTED, parseDuration } from "../../ground/duration.ts"
import { choice, integer, record, type Schema, says, strict } from "../../ground/shape.ts"
import { compilePath, PATH_ACCEPTED } from "../matching/match.ts"
import { canonicalField, FIELD_ACCEPTED, type FieldMistake, fieldMistake, TOKEN } from "./field-name.ts"
import { rejectionShape } from "./rejection-members.ts"

/** The accepted counts, for error messages. */
export const POSITIVE: string = `a positive whole number up to ${Number.MAX_SAFE_INTEGER}`
/** The accepted names of rules, for error messages. */
export const NAME_ACCEPTED = '1 to 64 printable ASCII characters without " and \\'
/** Names are written into header fields as they are (RFC 9651 section 3.3.3), so they must not need escaping. */
export const NAME: RegExp = /^[\x20!\x23-\x5b\x5d-\x7e]{1,64}$/

const VALUES = says("a list of values", "a list of non-empty strings")
const VALUE = says("a value", "a non-empty string")
const values = v.array(v.pipe(v.string(VALUE), v.minLength(1, VALUE)), VALUES)

const FIELD_AND_FUNCTION =
  'a name, with the function that reads it in "fields": { field: "user_id", fields: { user_id: (request) => … } }'
/** A function as a field is an attempt to count by its result, as other rate limiters allow. */
const hasFunction = (value: unknown): boolean =>
  [value, ...Object.values(value ?? {})].some((each) => typeof each === "function")
const FIELDS = ({ input }: { readonly input: unknown }): string =>
  says("a field or a list of fields", hasFunction(input) ? FIELD_AND_FUNCTION : FIELD_ACCEPTED)
const fieldNames = v.pipe(
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

const BUCKETS = says("a valid number of sub-windows", "a whole number from 2 to 360")
const BOOLEAN = v.boolean(says("a boolean", "true or false"))
const durationOf = (noun: string): Schema =>
  v.custom((value) => parseDuration(value) !== undefined, says(noun, DURATION_ACCEPTED))
const duration = durationOf("a duration")
const THRESHOLDS = says("a list of percentages", "a list such as [80, 100]")
const THRESHOLD = says("a percentage of the limit", "a whole number from 1 to 100")
const UNIQUE = says("unique in the list", "each percentage once")
/** Most steps of growing blocks. The counter of a penalty has room for 31. */
const MOST_BLOCKS = 16
const BLOCKS = says("a valid list of durations", `1 to ${MOST_BLOCKS} durations`)
const SHRINKS = says(
  "at least as long as the length before it",
  'lengths from short to long, such as ["1 minute", "1 hour"]',
)
const growing = v.pipe(
  v.array(duration),
  v.minLength(1, BLOCKS),
  v.maxLength(MOST_BLOCKS, BLOCKS),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const { value } = dataset
    // A set in DynamoDB has no order, so its members may arrive in any.
    for (const [key, length] of value.entries()) {
      if (key === 0 || Number(parseDuration(length)) >= Number(parseDuration(value[key - 1]))) continue
      const path = { type: "array", origin: "value", input: value, key, value: length } as const
      addIssue({ message: SHRINKS, input: length, path: [path] })
    }
  }),
)
const single = v.custom(
  (value) => parseDuration(value) !== undefined,
  says("a duration", `${DURATION_ACCEPTED}, or a list of 1 to ${MOST_BLOCKS} of them`),
)
const blockLengths = v.pipe(
  v.unknown(),
  v.rawCheck(({ dataset: { value }, addIssue }) => {
    const { issues = [] } = v.safeParse(Array.isArray(value) ? growing : single, value)
    for (const { input, message, path } of issues) addIssue({ input, message, ...(path && { path }) })
  }),
)
const METHOD = says("an HTTP method", 'a name such as "GET" or "POST"')
const METHODS = says("a list of methods", 'a list such as ["GET", "POST"]')
const PATH = says("a path pattern", PATH_ACCEPTED)
const MESSAGE = says("a rejection message", "a string of 1 to 1024 characters")
const NAME_SAID = says("a name", NAME_ACCEPTED)
const matchFields = record(
  v.pipe(
    v.string(says("a field", FIELD_ACCEPTED)),
    v.rawCheck(({ dataset, addIssue }) => {
      const mistake = dataset.typed ? fieldMistake(dataset.value) : undefined
      if (mistake !== undefined) addIssue({ message: says(mistake.noun, mistake.accepted) })
    }),
  ),
  v.pipe(values, v.minLength(1, VALUES)),
  says("an object of fields", 'an object such as {"plan": ["free", "trial"]}'),
)

const OVERRIDES = says("an object of overrides", 'an object such as {"ann": 2, "vip-7": {"limit": 500}}')
const overrideLimit = integer(
  says(
    "a limit",
    `${POSITIVE}, or an object with a limit; to refuse a client, list it in deny, and to exempt it, in allow`,
  ),
  1,
)
/** An override in its long form. */
export const overrideShape = strict("an override", {
  limit: integer(says("a limit", POSITIVE), 1),
  burst: v.optional(integer(says("a burst", POSITIVE), 1)),
})
/** An override in either form. An object is checked as an object, so that the message is about its members. */
export const override: Schema = v.lazy((value) =>
  typeof value === "object" && value !== null ? overrideShape : overrideLimit,
)

/** Schemas of the rule members that are the same in code and in documents. None of them transforms its value. */
export const member = {
  name: v.pipe(v.string(NAME_SAID), v.regex(NAME, NAME_SAID)),
  limit: integer(says("a limit", POSITIVE), 1),
  window: durationOf("a window"),
  field: fieldNames,
  onMissing: choice("a valid value", ["ip", "skip", "deny", "shared"]),
  algorithm: choice("an algorithm", ALGORITHM_NAMES),
  align: choice("an alignment", ["epoch", "first-hit"]),
  buckets: integer(BUCKETS, 2, 360),
  burst: integer(says("a burst", POSITIVE), 1),
  refill: choice("a refill", ["continuous", "periodic"]),
  /** Read separately, by its kind: see `withThrottle`. */
  throttle: v.unknown(),
  countRejected: BOOLEAN,
  penalty: strict("a penalty", {
    refusals: integer(says("a valid number of refusals", POSITIVE), 1),
    within: v.optional(duration),
    for: blockLengths,
  }),
  notify: v.pipe(
    v.array(integer(THRESHOLD, 1, 100), THRESHOLDS),
    v.minLength(1, THRESHOLDS),
    v.checkItems((percent, index, all) => all.indexOf(percent) === index, UNIQUE),
  ),
  cost: integer(says("a cost", POSITIVE), 1),
  match: strict("a match", {
    methods: v.optional(
      v.pipe(v.array(v.pipe(v.string(METHOD), v.regex(TOKEN, METHOD)), METHODS), v.minLength(1, METHODS)),
    ),
    path: v.optional(v.pipe(v.string(PATH), v.check(isPathPattern, PATH))),
    fields: v.optional(matchFields),
  }),
  allow: values,
  deny: values,
  overrides: record(v.pipe(v.string(VALUE), v.minLength(1, VALUE)), override, OVERRIDES),
  rejectionMessage: v.pipe(v.string(MESSAGE), v.minLength(1, MESSAGE), v.maxLength(1024, MESSAGE)),
  rejection: rejectionShape,
  shadow: BOOLEAN,
  onStoreFailure: choice("a valid value", ["local", "allow", "deny"]),
} as const

/** Names that other rate limiters have for the members of a rule. */
export const NAMES_ELSEWHERE: Readonly<Record<string, string>> = {
  max: "limit",
  points: "limit",
  duration: "window",
  timeWindow: "window",
  windowMs: "window",
  per: "window",
  interval: "window",
  period: "window",
  ttl: "window",
  requests: "limit",
  key: "field",
  by: "field",
  path: "match",
  methods: "match",
  queue: "throttle",
  dryRun: "shadow",
  dry_run: "shadow",
}

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

function isPathPattern(path: string): boolean {
  // A longer path is not realistic. Compiling takes time and stack space in proportion to the length.
  if (!path.startsWith("/") || path.length > 1024) return false
  try {
    compilePath(path)
    return true
  } catch {
    return false
  }
}
