import type { AttributeValue } from "@aws-sdk/client-dynamodb"
import { exactNumber } from "@sluice/rules"

/** The attributes of an item, or the members of a map, as the SDK represents them. */
export type Attributes = Readonly<Record<string, AttributeValue>>

/** DynamoDB allows at most 32 levels, so a deeper value was not read from DynamoDB. */
const DEEPEST = 40

/**
 * Returns the value of an attribute as a plain value. The SDK's own converter is not used because it throws for numbers
 * beyond 2^53.
 *
 * - A number that is not exact in JavaScript stays a string, so that it is not mistaken for another number.
 * - A set becomes the list of its members, sorted by their strings.
 * - A value that rules cannot contain (binary, unknown types) becomes a symbol that describes it in error messages.
 * - `__proto__` is a member like any other.
 */
export function plainValue(value: AttributeValue | undefined, depth = 0): unknown {
  if (typeof value !== "object" || value === null) return Symbol("an attribute without a value")
  if (depth > DEEPEST) return Symbol("a value that is nested too deep")
  if (value.S !== undefined) return value.S
  if (value.N !== undefined) return exactNumber(value.N)
  if (value.BOOL !== undefined) return value.BOOL
  if (value.NULL !== undefined) return null
  if (value.L !== undefined) return value.L.map((each) => plainValue(each, depth + 1))
  if (value.M !== undefined) return plainMembers(value.M, depth + 1)
  if (value.SS !== undefined) return [...value.SS].sort()
  if (value.NS !== undefined) return [...value.NS].sort().map(exactNumber)
  if (value.B !== undefined) return Symbol(`binary data of ${value.B.length} bytes`)
  if (value.BS !== undefined) return Symbol(`a set of ${value.BS.length} binary values`)
  return Symbol("a value of an unknown type")
}

/** Returns the members of a map, each as a plain value. */
export function plainMembers(members: Attributes, depth = 0): Readonly<Record<string, unknown>> {
  // Unlike an assignment, `Object.fromEntries` makes "__proto__" an ordinary member.
  return Object.fromEntries(
    Object.keys(members).map((name) => [name, plainValue(members[name] as AttributeValue, depth)]),
  )
}

/** Returns the attribute that stores a plain JSON value. */
export function attributeOf(value: unknown): AttributeValue {
  switch (typeof value) {
    case "string":
      return { S: value }
    case "number":
      return { N: String(value) }
    case "boolean":
      return { BOOL: value }
    default:
      if (value === null) return { NULL: true }
      if (Array.isArray(value)) return { L: value.map(attributeOf) }
      return {
        M: Object.fromEntries(
          Object.entries(value as object).map(([name, member]) => [name, attributeOf(member)]),
        ),
      }
  }
}

/**
 * Returns the same string for equal plain values. The order of members does not matter, because DynamoDB does not
 * preserve it.
 */
export function canonicalText(value: unknown): string {
  if (typeof value === "symbol") return String(value)
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`
  const members = value as Readonly<Record<string, unknown>>
  let text = ""
  for (const name of Object.keys(members).sort()) {
    text += `${JSON.stringify(name)}:${canonicalText(members[name])},`
  }
  return `{${text}}`
}

/** Returns the size of an attribute in an item, in bytes as DynamoDB counts them, or slightly more. */
export function bytesOf(name: string, value: AttributeValue): number {
  return Buffer.byteLength(name) + valueBytes(value)
}

/**
 * Returns the size of a value in bytes. A list or map takes 3 bytes, plus 1 byte for each member. A number takes 1
 * byte per two digits, and at most 21 bytes.
 */
function valueBytes(value: AttributeValue): number {
  if (value.S !== undefined) return Buffer.byteLength(value.S)
  if (value.N !== undefined) return Math.ceil(value.N.length / 2) + 2
  if (value.L !== undefined) return value.L.reduce((sum, each) => sum + 1 + valueBytes(each), 3)
  if (value.M !== undefined) {
    return Object.entries(value.M).reduce((sum, [name, each]) => sum + 1 + bytesOf(name, each), 3)
  }
  return 1
}
