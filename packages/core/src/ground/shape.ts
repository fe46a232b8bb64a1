import { types } from "node:util"
import * as v from "valibot"
import { classOf, type MemberProblem, show, suggestion } from "./show.ts"

/** A schema. It changes no value that it accepts, and says of one that it refuses what it is not (`says`). */
export type Schema = v.GenericSchema

/** A schema of an object, with the schemas of its members. */
export type ObjectSchema<
  Entries extends Readonly<Record<string, Schema>> = Readonly<Record<string, Schema>>,
> = Schema & {
  readonly entries: Entries
}

/** A schema of an object that may have any members of one kind. */
export type RecordSchema = Schema & { readonly key: Schema; readonly value: Schema }

/** Returns the message for a refused value: that it is not `noun`, and what is accepted. `memberProblems` reads it. */
export function says(noun: string, accepted: string): string {
  return `${noun}\n${accepted}`
}

/** An enumeration that lists its choices when it refuses a value. */
export function choice(noun: string, names: readonly string[]): Schema {
  return v.picklist(names, says(noun, names.map((name) => `"${name}"`).join(", ")))
}

/** A whole number without rounding. */
export function integer(said: string, least: number, most: number = Number.MAX_SAFE_INTEGER): Schema {
  return v.pipe(v.number(said), v.safeInteger(said), v.minValue(least, said), v.maxValue(most, said))
}

/** An object that refuses members it does not know; `older` spellings are read but not named. */
export function strict<Entries extends Readonly<Record<string, Schema>>>(
  noun: string,
  entries: Entries,
  older: readonly string[] = [],
): ObjectSchema<Entries> {
  const names = Object.keys(entries).filter((name) => !older.includes(name))
  const unknown = says(`a member of ${noun}`, names.join(", "))
  const schema = checkedInside(
    isObject,
    says(noun, `an object with ${names.join(", ")}`),
    (value, report) => {
      for (const name in entries) report(name, v.safeParse(entries[name] as Schema, value[name]).issues)
      for (const name in value) {
        if (!Object.hasOwn(entries, name))
          report(name, [{ input: name, message: unknown, expected: UNKNOWN }])
      }
    },
  )
  return { ...schema, entries }
}

/** An object of any members whose names and values are right. */
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

/** What an unknown member is expected to be. */
const UNKNOWN = "never"

/**
 * An object that is checked member by member. The library's own objects take a list for an object, and report of all unknown members
 * the first and of missing ones not what they should be.
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

/** What a schema finds in a value. */
export interface Shape {
  /** The members that are right, still as they were given. */
  readonly good: Readonly<Record<string, unknown>>
  /** Names of those that are there and wrong; all names when the value is not an object. */
  readonly bad: ReadonlySet<string>
  readonly problems: readonly MemberProblem[]
}

/** Checks every member by itself, so that the right ones can be checked against each other while others are wrong. */
export function readShape(schema: ObjectSchema, unchecked: unknown): Shape {
  const { value, problems: pending } = withoutPromises(unchecked)
  const found = memberProblems(schema, value)
  const problems = pending.length === 0 ? found : [...pending, ...found.filter(isNew(pending))]
  if (!isObject(value)) return { good: {}, bad: new Set(Object.keys(schema.entries)), problems }
  const bad = problems.length === 0 ? NONE : new Set(problems.map(({ path }) => String(path[0])))
  // Thousands of rules are read at a stretch: a loop takes a third of what fromEntries does.
  const good: Record<string, unknown> = {}
  for (const name in schema.entries) {
    const member = value[name]
    if (member !== undefined && !bad.has(name)) good[name] = member
  }
  return { good, bad, problems }
}

/** Returns a filter for the problems of other members: a member that was left out because it is a promise is also "missing". */
function isNew(pending: readonly MemberProblem[]): (problem: MemberProblem) => boolean {
  return ({ path }) => !pending.some((known) => isSamePath(known.path, path))
}

const NONE: ReadonlySet<string> = new Set()

/**
 * Returns everything that is wrong with `value`. Each unknown member is a problem of its own. Two checks that refuse one value
 * for the same reason, such as a number that is neither whole nor positive, are one problem.
 */
export function memberProblems(schema: Schema, value: unknown): MemberProblem[] {
  const { issues = [] } = v.safeParse(schema, value)
  return issues.flatMap((issue, index): MemberProblem[] => {
    const path = pathOf(issue)
    const before = issues[index - 1]
    // Issues of one value follow each other.
    if (before?.message === issue.message && isSamePath(pathOf(before), path)) return []
    const [noun, accepted] = issue.message.split("\n") as [string, string]
    const message = mistakeOf(issue.input, noun)
    if (issue.expected !== UNKNOWN) return [{ path, message, accepted }]
    const meant = suggestion(issue.input as string, accepted.split(", "))
    // Who is told what was meant need not read the whole list, once for each mistake.
    return [meant === "" ? { path, message, accepted } : { path, message: message + meant }]
  })
}

function pathOf({ path }: Issue): readonly PropertyKey[] {
  return (path ?? []).map(({ key }) => key as PropertyKey)
}

function mistakeOf(given: unknown, noun: string): string {
  if (given === undefined) return "is missing"
  if (types.isAsyncFunction(given)) return "is an async function, for which no request waits"
  return `${show(given)} is not ${noun}`
}

/** Whether it is a function whose answer is there at once. An async one is told from others as long as no compiler rewrites it. */
export function answersAtOnce(value: unknown): boolean {
  return typeof value === "function" && !types.isAsyncFunction(value)
}

/** Compares part by part, because a name in a path can be a symbol, which cannot be joined to text. */
function isSamePath(one: readonly PropertyKey[], other: readonly PropertyKey[]): boolean {
  return one.length === other.length && one.every((part, index) => part === other[index])
}

/** Options nest no deeper: `match.fields.plan`. */
const DEEPEST = 3

/**
 * Returns the value without the members that are promises, and a problem for each of them. A schema takes a promise for an
 * object without members: a `match` that was not awaited would match every request.
 */
function withoutPromises(value: unknown): {
  readonly value: unknown
  readonly problems: readonly MemberProblem[]
} {
  const problems: MemberProblem[] = []
  return { value: copyWithout(value, [], problems), problems }
}

/** Returns the value itself if it has no such member. */
function copyWithout(value: unknown, path: readonly string[], problems: MemberProblem[]): unknown {
  if (path.length >= DEEPEST || !isPlain(value)) return value
  let copy: Record<string, unknown> | undefined
  for (const name of Object.keys(value)) {
    const given = value[name]
    const place = [...path, name]
    if (types.isPromise(given)) {
      problems.push({ path: place, message: "is a promise", accepted: "its value: write await before it" })
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

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

function isDataObject(value: unknown): boolean {
  return isObject(value) && classOf(value) === undefined
}

/** True for an object that a literal or a document makes. Instances of classes, such as clients and stores, are not options. */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
