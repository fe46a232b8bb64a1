import { types } from "node:util"
import { z } from "zod"
import { type MemberProblem, show, suggestion } from "./show.ts"

/** The own error of a schema: what a value that it refuses is not, and what would be accepted. */
export interface Says {
  readonly error: string
}

/** Says of a refused value that it is not `noun`, and what would be accepted; `memberProblems` reads it back. */
export function says(noun: string, accepted: string): Says {
  return { error: `${noun}\n${accepted}` }
}

/** An enumeration that names its own choices when it is refused. */
export function choice<const T extends readonly [string, ...string[]]>(
  noun: string,
  names: T,
): z.ZodEnum<{ [K in T[number]]: K }> {
  return z.enum(names, says(noun, names.map((name) => `"${name}"`).join(", ")))
}

/** An object that refuses members it does not know; `older` spellings are read but not named. */
export function strict<T extends z.core.$ZodLooseShape>(
  noun: string,
  shape: T,
  older: readonly string[] = [],
): z.ZodObject<T, z.core.$strict> {
  const names = Object.keys(shape).filter((name) => !older.includes(name))
  return z.strictObject(shape, {
    error: ({ code }) =>
      code === "unrecognized_keys"
        ? says(`a member of ${noun}`, names.join(", ")).error
        : says(noun, `an object with ${names.join(", ")}`).error,
  })
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
export function readShape(schema: z.ZodObject, unchecked: unknown): Shape {
  const { value, problems: pending } = withoutPromises(unchecked)
  const { error } = schema.safeParse(value)
  const found = error === undefined ? [] : memberProblems(error.issues, value)
  const problems = pending.length === 0 ? found : [...pending, ...found.filter(isNew(pending))]
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { good: {}, bad: new Set(Object.keys(schema.shape)), problems }
  const bad = problems.length === 0 ? NONE : new Set(problems.map(({ path }) => String(path[0])))
  const given = value as Readonly<Record<string, unknown>>
  // Thousands of rules are read at a stretch: a loop takes a third of what fromEntries does.
  const good: Record<string, unknown> = {}
  for (const name in schema.shape) {
    const member = given[name]
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
 * What is wrong with `value`, from the issues that a schema found in it. Every schema in it says what it accepts
 * (`says`), so the issues' own codes do not matter, but for unknown keys: each becomes a problem of its own. Two checks that
 * refuse one value for the same reason, as a number below -2^53 that is neither exact nor positive, are one problem.
 */
export function memberProblems(issues: readonly z.core.$ZodIssue[], value: unknown): MemberProblem[] {
  return issues.flatMap((issue, index): MemberProblem[] => {
    if (isRepeated(issue, issues[index - 1])) return []
    const said = issue.code === "invalid_key" ? (issue.issues[0] as z.core.$ZodIssue) : issue
    const [noun, accepted] = said.message.split("\n") as [string, string]
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => {
        const path = [...issue.path, key]
        const meant = suggestion(key, accepted.split(", "))
        const message = `${show(key)} is not ${noun}${meant}`
        // Who is told what was meant need not read the whole list, once for each mistake.
        return meant === "" ? { path, message, accepted } : { path, message }
      })
    }
    const given = issue.code === "invalid_key" ? issue.path.at(-1) : valueAt(value, issue.path)
    return [{ path: issue.path, message: mistakeOf(given, noun), accepted }]
  })
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

/** Issues of one value follow each other. */
function isRepeated({ path, message }: z.core.$ZodIssue, before: z.core.$ZodIssue | undefined): boolean {
  return before?.message === message && isSamePath(before.path, path)
}

/** Compares part by part, because a name in a path can be a symbol, which cannot be joined to text. */
function isSamePath(one: readonly PropertyKey[], other: readonly PropertyKey[]): boolean {
  return one.length === other.length && one.every((part, index) => part === other[index])
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)[key], value)
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

/** True for an object that a literal or a document makes. Instances of classes, such as clients and stores, are not options. */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
