import * as v from "valibot"
import { type ObjectSchema, readShape, type Schema, says, strict } from "../../ground/shape.ts"
import type { MemberProblem } from "../../ground/show.ts"
import type { ServiceMetadata } from "../service-metadata.ts"
import { given } from "./member.ts"

const text = (noun: string, most: number) => {
  const said = says(noun, `a string of 1 to ${most} characters`)
  return v.optional(v.pipe(v.string(said), v.minLength(1, said), v.maxLength(most, said)))
}

const LONGEST_LINK = 2_048
/**
 * Matches an http or https URI without user and password, because the URI is sent to every refused client. It may
 * contain only the characters of RFC 3986 section 2, because none of these ends the header or the `<…>` in it.
 */
const URI = /^https?:\/\/[\w\-.~:[\]%]+(?:[/?#][\w\-.~:/?#[\]@!$&'()*+,;=%]*)?$/
const LINK = says(
  "a link",
  `an http or https URL without user and password, at most ${LONGEST_LINK} characters, with other characters than those of RFC 3986 percent-encoded`,
)

/** The schema of a service's metadata. */
export const serviceMetadata: ObjectSchema<Readonly<Record<keyof ServiceMetadata, Schema>>> = strict(
  "the metadata of a service",
  {
    owner: text("an owner", 256),
    description: text("a description", 1_024),
    contact: text("a contact", 256),
    link: v.optional(
      v.pipe(
        v.string(LINK),
        v.maxLength(LONGEST_LINK, LINK),
        v.regex(URI, LINK),
        v.check((link) => URL.canParse(link), LINK),
      ),
    ),
  },
)

/** Returns the problems of metadata from an untrusted author. Absent metadata has no problems. */
export function metadataProblems(value: unknown): readonly MemberProblem[] {
  if (value === undefined) return []
  const { problems } = readShape(serviceMetadata, value)
  return problems.map((problem) => ({ ...problem, path: ["metadata", ...problem.path] }))
}

/**
 * Returns a frozen copy of valid metadata, with its members in a fixed order. Returns undefined if the metadata is
 * absent or has no members.
 */
export function plainMetadata(metadata: ServiceMetadata | undefined): ServiceMetadata | undefined {
  const names = Object.keys(serviceMetadata.entries) as (keyof ServiceMetadata)[]
  const members = given(Object.fromEntries(names.map((name) => [name, metadata?.[name]])))
  return Object.keys(members).length === 0 ? undefined : Object.freeze(members)
}
