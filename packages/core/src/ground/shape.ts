import { types } from "node:util"
import * as v from "valibot"
import { hintFor } from "./hints.ts"
import { classOf, type MemberProblem, nearest, show, suggestion } from "./show.ts"

/**
 * A schema. The schema does not change the values that it accepts. Its message for an invalid value is created by
 * `says`.
 */
export type Schema = v.GenericSchema

/** A schema of an object, with the schemas of its members. */
export type ObjectSchema<
  Entries extends Readonly<Record<string, Schema>> = Readonly<Record<string, Schema>>,
> = Schema & {
  readonly entries: Entries
}

/** A schema of an object with any number of members of one kind. */
export type RecordSchema = Schema & { readonly key: Schema; readonly value: Schema }

/**
 * Returns the message for an invalid value, which is not `noun` although `accepted` is expected. `memberProblems`
 * parses it.
 */
export function says(noun: string, accepted: string): string {
  return `${noun}\n${accepted}`
}

/** Returns the schema of an enumeration. The message for an invalid value lists the valid choices. */
export function choice(noun: string, names: readonly string[]): Schema {
  return v.picklist(names, says(noun, names.map((name) => `"${name}"`).join(", ")))
}

/** Returns the schema of a safe integer from `least` to `most`. */
export function integer(said: string, least: number, most: number = Number.MAX_SAFE_INTEGER): Schema {
  return v.pipe(v.number(said), v.safeInteger(said), v.minValue(least, said), v.maxValue(most, said))
}

/** Whether the value has these methods. The value may also be a function: for example, Date is a valid clock. */
export function hasMethods(value: unknown, ...methods: string[]): boolean {
  const members = value as Readonly<Record<string, unknown>> | null | undefined
  return methods.every((name) => typeof members?.[name] === "function")
}

/** The schema of an option that is a logger. */
export const logger: Schema = v.optional(
  v.custom(
    (value) => hasMethods(value, "warn", "error"),
    says("a logger", "an object with warn() and error(), such as pino's"),
  ),
)

/** Maximum number of names in a message. More names would make the rest of the message hard to find. */
const MOST_LISTED = 12

/**
 * Returns the schema of an object without unknown members. The schema accepts `older` spellings, but does not list
 * them. If an unknown name is usual `elsewhere`, the message contains the name to use instead.
 */
export function strict<Entries extends Readonly<Record<string, Schema>>>(
  noun: string,
  entries: Entries,
  older: readonly string[] = [],
  elsewhere: Readonly<Record<string, string>> = {},
): ObjectSchema<Entries> {
  const names = Object.keys(entries).filter((name) => !older.includes(name))
  const unknown = says(`a member of ${noun}`, names.join(", "))
  const listed = names.length > MOST_LISTED ? [...names.slice(0, 5), "…"] : names
  const schema = checkedInside(
    isObject,
    says(noun, `an object with ${listed.join(", ")}`),
    (value, report) => {
      for (const name in entries) report(name, v.safeParse(entries[name] as Schema, value[name]).issues)
      for (const name in value) {
        if (Object.hasOwn(entries, name)) continue
        const message = Object.hasOwn(elsewhere, name)
          ? says(`a member of ${noun}; use "${elsewhere[name]}" instead`, "")
          : unknown
        report(name, [{ input: name, message, expected: UNKNOWN }])
      }
    },
  )
  return { ...schema, entries }
}

/** Returns the schema of an object with any number of members whose names and values are valid. */
export function record(key: Schema, value: Schema, said: string): RecordSchema {
  const schema = checkedInside(isDataObject, said, (members, report) => {
    for (const name of Reflect.ownKeys(members)) {
      report(name, v.safeParse(key, name).issues ?? v.safeParse(value, members[name as string]).issues)
    }
  })
  return { ...schema, key, value }
}

interface Issue {
  readonly input: unknown
  readonly message: string
  readonly expected: string | null
  readonly path?: readonly v.IssuePathItem[] | undefined
}
type Report = (name: PropertyKey, issues: readonly Issue[] | undefined) => void

/** The `expected` value in an issue about an unknown member. */
const UNKNOWN = "never"

/**
 * Returns the schema of an object that is checked member by member. This schema replaces the object schemas of
 * valibot, which accept an array and report only the first unknown member. Also, valibot does not report what is
 * expected for a missing member.
 */
function checkedInside(
  isRight: (value: unknown) => boolean,
  said: string,
  check: (value: Readonly<Record<string, unknown>>, report: Report) => void,
): Schema {
  return v.pipe(
    v.custom<Readonly<Record<string, unknown>>>(isRight, said),
    v.rawCheck(({ dataset, addIssue }) => {
      if (!dataset.typed) return
      check(dataset.value, (key, issues = []) => {
        for (const { input, message, expected, path } of issues) {
          addIssue({
            input,
            message,
            expected: expected ?? "",
            path: [{ key } as v.IssuePathItem, ...(path ?? [])],
          })
        }
      })
    }),
  )
}

/** The result of checking a value against a schema. */
export interface Shape {
  /** The valid members, with their original values. */
  readonly good: Readonly<Record<string, unknown>>
  /** Names of the invalid members, or the names of all members if the value is not an object. */
  readonly bad: ReadonlySet<string>
  readonly problems: readonly MemberProblem[]
}

/**
 * Checks each member separately. So the caller can check valid members against each other even if other members are
 * invalid.
 */
export function readShape(schema: ObjectSchema, unchecked: unknown): Shape {
  const { value, problems: pending } = withoutPromises(unchecked)
  const found = memberProblems(schema, value)
  const problems = pending.length === 0 ? found : [...pending, ...found.filter(isNew(pending))]
  if (!isObject(value)) return { good: {}, bad: new Set(Object.keys(schema.entries)), problems }
  const bad = problems.length === 0 ? NONE : new Set(problems.map(({ path }) => String(path[0])))
  // Use a loop, which takes a third of the time of fromEntries, because thousands of rules may be read in one step.
  const good: Record<string, unknown> = {}
  for (const name in schema.entries) {
    const member = value[name]
    if (member !== undefined && !bad.has(name)) good[name] = member
  }
  return { good, bad, problems }
}

/**
 * Returns a filter that drops problems of the `pending` members. Pending members are promises that were removed
 * before the check, so the check also reports them as missing.
 */
function isNew(pending: readonly MemberProblem[]): (problem: MemberProblem) => boolean {
  return ({ path }) => !pending.some((known) => isSamePath(known.path, path))
}

const NONE: ReadonlySet<string> = new Set()

/**
 * Returns all problems of `value`. Each unknown member is a separate problem. If two checks report the same message
 * for a value, that is only one problem. For example, a number may be neither whole nor positive.
 */
export function memberProblems(schema: Schema, value: unknown): MemberProblem[] {
  const { issues = [] } = v.safeParse(schema, value)
  return issues.flatMap((issue, index): MemberProblem[] => {
    const path = pathOf(issue)
    const before = issues[index - 1]
    // Comparing with the previous issue is enough, because issues of the same value are adjacent.
    if (before?.message === issue.message && isSamePath(pathOf(before), path)) return []
    const [noun, accepted] = issue.message.split("\n") as [string, string]
    const message = mistakeOf(issue.input, noun)
    if (issue.expected !== UNKNOWN) {
      return [{ path, message: message + hintFor(issue.input, noun, accepted), accepted }]
    }
    if (accepted === "") return [{ path, message }]
    const name = issue.input as string
    const names = accepted.split(", ")
    const meant = suggestion(name, names)
    // A suggestion replaces the list of accepted names, which would be repeated for each mistake.
    if (meant !== "") return [{ path, message: message + meant }]
    if (names.length <= MOST_LISTED) return [{ path, message, accepted }]
    return [{ path, message: `${message}; the nearest is "${nearest(name, names)}"` }]
  })
}

function pathOf({ path }: Issue): readonly PropertyKey[] {
  return (path ?? []).map(({ key }) => key as PropertyKey)
}

function mistakeOf(given: unknown, noun: string): string {
  if (given === undefined) return "is missing"
  if (types.isAsyncFunction(given)) return "is an async function, but its result is needed immediately"
  return `${show(given)} is not ${noun}`
}

/**
 * True if the value is a function that returns synchronously. Does not recognize an async function that a compiler
 * has rewritten.
 */
export function answersAtOnce(value: unknown): boolean {
  return typeof value === "function" && !types.isAsyncFunction(value)
}

/**
 * True if the paths are equal. Compares each part separately, because a part can be a symbol, which cannot be joined
 * to a string.
 */
function isSamePath(one: readonly PropertyKey[], other: readonly PropertyKey[]): boolean {
  return one.length === other.length && one.every((part, index) => part === other[index])
}

/** The maximum nesting depth of options: `match.fields.plan`. */
const DEEPEST = 3

/**
 * Returns the value without the members that are promises, and a problem for each removed member. A schema would
 * accept a promise as an object without members, so a `match` that was not awaited would match every request.
 */
function withoutPromises(value: unknown): {
  readonly value: unknown
  readonly problems: readonly MemberProblem[]
} {
  const problems: MemberProblem[] = []
  return { value: copyWithout(value, [], problems), problems }
}

/** Returns a copy of the value without promises, or the value itself if it contains no promises. */
function copyWithout(value: unknown, path: readonly string[], problems: MemberProblem[]): unknown {
  if (path.length >= DEEPEST || !isPlain(value)) return value
  let copy: Record<string, unknown> | undefined
  for (const name of Object.keys(value)) {
    const given = value[name]
    const place = [...path, name]
    if (types.isPromise(given)) {
      problems.push({ path: place, message: "is a promise", accepted: "its value, with await before it" })
      copy ??= { ...value }
      delete copy[name]
      continue
    }
    const member = copyWithout(given, place, problems)
    if (member === given) continue
    copy ??= { ...value }
    copy[name] = member
  }
  return copy ?? value
}

/** True for an object that is not an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

function isDataObject(value: unknown): boolean {
  return isObject(value) && classOf(value) === undefined
}

/**
 * True for an object from a literal or a document. Instances of classes, such as clients and stores, are not sets of
 * options.
 */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
