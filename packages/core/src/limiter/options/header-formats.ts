import * as v from "valibot"
import { InvalidOptionError } from "../../ground/errors.ts"
import { choice, memberProblems, type ObjectSchema, type Schema, says, strict } from "../../ground/shape.ts"
import { locate, show } from "../../ground/show.ts"
import { TOKEN } from "../../rules/parsing/field-name.ts"

/** The format of rate limits in response headers. */
export type HeaderDialect =
  /** `RateLimit-Policy: "name";q=100;w=60`, `RateLimit: "name";r=50;t=30` (draft-ietf-httpapi-ratelimit-headers-11). */
  | "draft-11"
  /** The editor's draft after draft-11: `RateLimit: "name";a=50;w=30;c=1`. */
  | "next"
  /** `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset` (seconds from now), `RateLimit-Policy: 100;w=60`. */
  | "triple"
  /** `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Reset` (epoch seconds). */
  | "legacy"

/** Every dialect, the default first. */
export const HEADER_DIALECTS: readonly HeaderDialect[] = ["draft-11", "next", "triple", "legacy"]

/** A dialect whose headers have the app's own names: `{ dialect: "legacy", prefix: "X-App-RateLimit" }`. */
export interface NamedHeaders {
  /** The format of the values. */
  readonly dialect: HeaderDialect
  /** The prefix of the header names, instead of `RateLimit` or `X-RateLimit`. */
  readonly prefix?: string | undefined
  /** Full names of single headers. In "draft-11" and "next", `limit` is the name of the header `RateLimit`. */
  readonly names?: Readonly<Partial<Record<HeaderKey, string | undefined>>> | undefined
}

/** A header of a dialect. */
export type HeaderKey = "limit" | "remaining" | "reset" | "policy"

/** The rate limit headers of responses: a dialect, several dialects, or false for none. */
export type HeadersOption = HeaderDialect | NamedHeaders | readonly (HeaderDialect | NamedHeaders)[] | false

/** A dialect with the names of its headers. */
export interface HeaderFormat {
  readonly dialect: HeaderDialect
  readonly names: Readonly<Partial<Record<HeaderKey, string>>>
  /** The names of headers to which each mount appends its own members. */
  readonly lists: readonly (string | undefined)[]
}

const MEMBERS = { policy: "-Policy", limit: "" }
const SINGLE = { limit: "-Limit", remaining: "-Remaining", reset: "-Reset" }
/** The headers of each dialect, by the suffixes of their names. */
const ENDS: Readonly<Record<HeaderDialect, Readonly<Partial<Record<HeaderKey, string>>>>> = {
  "draft-11": MEMBERS,
  next: MEMBERS,
  triple: { ...SINGLE, policy: "-Policy" },
  legacy: SINGLE,
}

/** Header names that are not allowed, because they have another meaning in the limiter or in HTTP. */
const OTHERS =
  "Retry-After, Cache-Control, Content-Type, Content-Length, Link, Set-Cookie, Connection, Transfer-Encoding"

const ACCEPTED = `${HEADER_DIALECTS.map((name) => `"${name}"`).join(", ")}, { dialect, prefix, names }, a list of them, or false`
const DIALECT = says("a header dialect", ACCEPTED)
const NAME = says("a header name", 'a name such as "X-App-RateLimit", at most 64 characters')
const name = v.optional(v.pipe(v.string(NAME), v.maxLength(64, NAME), v.regex(TOKEN, NAME)))
const dialect = choice("a header dialect", HEADER_DIALECTS)
const named = (names: Readonly<Record<string, unknown>>): ObjectSchema =>
  strict("a header format", {
    dialect,
    prefix: name,
    names: v.optional(strict("the names", Object.fromEntries(Object.keys(names).map((key) => [key, name])))),
  })
const UNKNOWN = named(SINGLE)
const NAMED = new Map(HEADER_DIALECTS.map((each) => [each, named(ENDS[each])]))

const format: Schema = v.lazy((value) =>
  typeof value !== "object" || value === null || Array.isArray(value)
    ? v.picklist(HEADER_DIALECTS, DIALECT)
    : (NAMED.get((value as NamedHeaders).dialect) ?? UNKNOWN),
)

/** The shape of the option `headers`. */
export const headersShape: Schema = v.pipe(
  v.lazy((value) =>
    value === false
      ? v.literal(false)
      : Array.isArray(value)
        ? v.pipe(v.array(format), v.minLength(1, DIALECT))
        : format,
  ),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed || dataset.issues !== undefined) return
    const writers = new Map(
      OTHERS.toLowerCase()
        .split(", ")
        .map((other) => [other, "the limiter"]),
    )
    const given = listOf(dataset.value as HeadersOption)
    for (const [key, input] of given.entries()) {
      for (const own of Object.values(formatOf(input).names)) {
        const writer = writers.get(own.toLowerCase())
        writers.set(own.toLowerCase(), show(input))
        if (writer === undefined) continue
        const noun = `usable, because it writes ${own}, which ${writer} writes too`
        const message = says(noun, 'other names, such as { dialect: "triple", prefix: "X-App-RateLimit" }')
        const path = { type: "array", origin: "value", input: given, key, value: input } as const
        addIssue(Array.isArray(dataset.value) ? { input, message, path: [path] } : { input, message })
        break
      }
    }
  }),
)

/** Returns the dialects of a valid option, with the names of their headers. */
export function headerFormats(option: HeadersOption): readonly HeaderFormat[] {
  return listOf(option).map(formatOf)
}

/** Returns the dialects of an option that may be invalid. Throws InvalidOptionError with every problem. */
export function requireHeaderFormats(option: HeadersOption): readonly HeaderFormat[] {
  const problems = memberProblems(headersShape, option)
  if (problems.length > 0) throw new InvalidOptionError(problems.map((each) => locate("headers", each)))
  return headerFormats(option)
}

function listOf(option: HeadersOption): readonly (HeaderDialect | NamedHeaders)[] {
  // Array.isArray does not narrow a readonly list.
  return option === false ? [] : ([option].flat() as readonly (HeaderDialect | NamedHeaders)[])
}

function formatOf(given: HeaderDialect | NamedHeaders): HeaderFormat {
  const {
    dialect,
    prefix,
    names: own = {},
  }: NamedHeaders = typeof given === "object" ? given : { dialect: given }
  const first = prefix ?? (dialect === "legacy" ? "X-RateLimit" : "RateLimit")
  const names = Object.fromEntries(
    Object.entries(ENDS[dialect]).map(([key, end]) => [key, own[key as HeaderKey] ?? first + end]),
  ) as HeaderFormat["names"]
  return { dialect, names, lists: ENDS[dialect] === MEMBERS ? Object.values(names) : [names.policy] }
}
