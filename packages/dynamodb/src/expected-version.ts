import type { AttributeValue } from "@aws-sdk/client-dynamodb"
import { InvalidOptionError } from "@sluice/core"
import { show } from "@sluice/core/kit"
import type { RegisteredRules } from "@sluice/rules"
import type { TableItem } from "./table.ts"

/** The state that a write expects, as a condition that DynamoDB checks when it writes. */
export interface Condition {
  /**
   * Uses the names `#key` and `#version`, and the value `:seen` if `seen` is given. Absent if any state is accepted.
   */
  readonly expression?: string
  readonly seen?: AttributeValue
  /** The version of the written rules. */
  readonly next: number
}

/** Returns the condition for the version that a caller expects. Throws InvalidOptionError for an invalid version. */
export function conditionFor(version: number | undefined): Condition {
  if (version === undefined) return { expression: "attribute_not_exists(#key)", next: 1 }
  return conditionOn(version)
}

/** Returns the condition of a removal. Throws InvalidOptionError if the version is invalid or missing. */
export function removalOf(version: number | "any" | undefined): Condition {
  return version === "any" ? { next: 0 } : conditionOn(version)
}

function conditionOn(version: number | undefined): Condition {
  if (version === undefined || !isVersion(version)) {
    const message = version === undefined ? "is missing" : `${show(version)} is not a version`
    throw new InvalidOptionError([
      { path: "version", message, accepted: '0 or a positive whole number, or "any" to accept any version' },
    ])
  }
  const seen = { N: String(version) }
  // Rules that were stored by hand may lack a version.
  const expression = version === 0 ? "attribute_not_exists(#version) OR #version = :seen" : "#version = :seen"
  return { expression, seen, next: version + 1 }
}

/**
 * Returns the condition that the found item is still stored with the same version, even if this version is missing or
 * not a number.
 */
export function conditionOf(found: TableItem | undefined): Condition {
  if (found === undefined) return conditionFor(undefined)
  const { version } = found.item
  if (version === undefined) {
    return { expression: "attribute_exists(#key) AND attribute_not_exists(#version)", next: 1 }
  }
  if (version.N === undefined) {
    const expression = "attribute_exists(#version) AND NOT attribute_type(#version, :seen)"
    return { expression, seen: { S: "N" }, next: 1 }
  }
  const number = Number(version.N)
  return { expression: "#version = :seen", seen: version, next: isVersion(number) ? number + 1 : 1 }
}

/** True if the number is a valid version that can be incremented. */
function isVersion(number: number): boolean {
  return Number.isSafeInteger(number) && number >= 0 && number < Number.MAX_SAFE_INTEGER
}

/** Returns the message of a conflict: what is stored, what was expected, and what to do. */
export function conflictMessage(
  tableName: string,
  service: string,
  { seen, next }: Condition,
  found: RegisteredRules | undefined,
): string {
  const what = `Service ${show(service)} in DynamoDB table ${show(tableName)}`
  const wanted =
    seen === undefined
      ? "no rules were"
      : next === 1
        ? "rules without a version were"
        : `version ${next - 1} was`
  const expected = `but ${wanted} expected. Nothing was changed`
  if (found === undefined) {
    return `${what} has no rules, ${expected}. Write without a version to register them again`
  }
  const isVersioned = found.version > 0
  const there = isVersioned ? `version ${found.version}` : "rules without a version"
  // Suggest "any" for an invalid stored version, because it does not equal any number.
  const isNone = found.problems.some(({ path }) => path.endsWith(" version"))
  const retry = isNone ? '"any"' : found.version
  return `${what} has ${there}, ${expected}. Read the stored rules, and write again with version: ${retry}`
}
