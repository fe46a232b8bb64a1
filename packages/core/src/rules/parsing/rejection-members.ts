import * as v from "valibot"
import { rejectionText } from "../../ground/answer.ts"
import { answersAtOnce, integer, type ObjectSchema, type Schema, says, strict } from "../../ground/shape.ts"
import type { MemberProblem } from "../../ground/show.ts"
import type { ParsedRejection, RuleRejection } from "../rejection.ts"
import { renamed, type StoredNames } from "./member.ts"

/** Maximum number of characters in a body, and maximum depth of nested objects in it. */
export const MAX_BODY = 16_384
const DEEPEST = 16

const DATA = `a string, an object or an array that JSON can represent, at most ${MAX_BODY} characters`
const STATUS = says(
  "a status for a refusal",
  "a whole number from 400 to 599; onRejected can send another one",
)
const TYPE = says("a media type", 'a string such as "text/html; charset=utf-8"')
const MEDIA_TYPE =
  /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+(?: *; *[\w!#$%&'*+.^`|~-]+=(?:[\w!#$%&'*+.^`|~-]+|"[ !#-[\]-~]*"))*$/

const status = v.optional(integer(STATUS, 400, 599))
const contentType = v.optional(v.pipe(v.string(TYPE), v.maxLength(128, TYPE), v.regex(MEDIA_TYPE, TYPE)))
const body = (isAccepted: (value: unknown) => boolean, accepted: string): Schema =>
  v.optional(v.custom(isAccepted, says("a body", accepted)))

/** The names of a rejection's members in documents. */
export const REJECTION_NAMES: StoredNames = { contentType: "content_type" }

/** The shape of a rejection in code. */
export const rejectionShape: ObjectSchema = strict("a rejection", {
  status,
  body: body(
    (value) => answersAtOnce(value) || isData(value),
    `${DATA}, or a function (request, rejection, decision) that returns one`,
  ),
  contentType,
})

/** The shape of a rejection in documents. */
export const storedRejection: ObjectSchema = strict(
  "a rejection",
  renamed({ status, body: body(isData, DATA), contentType }, REJECTION_NAMES),
)

function isData(value: unknown): boolean {
  if (typeof value !== "string" && (typeof value !== "object" || value === null || !isJson(value, 0)))
    return false
  return rejectionText(value).text.length <= MAX_BODY
}

function isJson(value: unknown, depth: number): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true
  // Accept only these numbers, because DynamoDB returns other numbers with different digits.
  if (typeof value === "number") return Math.abs(value) <= Number.MAX_SAFE_INTEGER && !/e/.test(String(value))
  if (typeof value !== "object" || depth > DEEPEST) return false
  const isList = Array.isArray(value)
  const prototype: unknown = Object.getPrototypeOf(value)
  if (!isList && prototype !== Object.prototype && prototype !== null) return false
  const members = isList ? Array.from(value) : Object.values(value).filter((member) => member !== undefined)
  return members.every((member) => isJson(member, depth + 1))
}

/** Returns the stored form of the rejection. */
export function storeRejection({ status, body, contentType }: RuleRejection): unknown {
  return { status, body, content_type: contentType }
}

/** Returns the problem of a media type without a body. The standard body has its own media type. */
export function rejectionProblems(rejection: RuleRejection | undefined): MemberProblem[] {
  if (rejection?.contentType === undefined || rejection.body !== undefined) return []
  const message = "is given without a body"
  return [{ path: ["rejection", "contentType"], message, accepted: "a body too, or no contentType" }]
}

/** Returns a valid rejection with a body that is ready to be sent, unless it is a function. */
export function fillRejection({ status, body, contentType }: RuleRejection): ParsedRejection {
  const own = status === undefined ? {} : { status }
  if (body === undefined) return own
  if (typeof body !== "function") return { ...own, body: rejectionText(body, contentType) }
  return { ...own, body, ...(contentType !== undefined && { contentType }) }
}
