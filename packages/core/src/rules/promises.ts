import { types } from "node:util"
import type { MemberProblem } from "./problems.ts"

/** Options nest no deeper: `match.fields.plan`. */
const DEEPEST = 3

/**
 * Returns the value without the members that are promises, and a problem for each of them. A schema takes a promise for an
 * object without members: a `match` that was not awaited would match every request.
 */
export function withoutPromises(value: unknown): {
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
