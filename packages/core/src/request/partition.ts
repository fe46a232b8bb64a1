import { hash } from "node:crypto"
import type { OnMissing } from "../ground/policy.ts"
import type { FieldReader, RequestFacts } from "./request.ts"

/** The rule does not count this request. */
export const SKIP: unique symbol = Symbol("skip")

/** The rule refuses this request, because it has not got the field. */
export interface MissingField {
  readonly field: string
}

/** Whose counter a rule takes from: its text, or why there is none. */
export type Partition = string | typeof SKIP | MissingField

/** The longest text that is kept readable; a UUID, an API key or an e-mail address fits. */
export const LONGEST_PARTITION = 128

const SHARED = "@shared"

/** What a rule says about its partitions. */
export interface PartitionRule {
  /** Empty for a rule that counts the whole service. */
  readonly fields: readonly string[]
  readonly onMissing: OnMissing
}

/**
 * The text of a counter: no two lists of values have the same, and none is longer than 128 UTF-16 units.
 *
 * | values | text |
 * | --- | --- |
 * | none: the whole service | empty |
 * | one | itself, a leading "@" or "#" doubled |
 * | several | "@", then each with its length: `["7", "1.2.3.4"]` is `@1:77:1.2.3.4` |
 * | where that is longer, or holds a surrogate | "#" and the SHA-256 of its UTF-16 in base64url |
 *
 * Only the field `service` has an empty value: by itself it is the whole service. A lone surrogate has no UTF-8, so in
 * a store's key it would be the same as any other.
 */
export function partitionText(values: readonly string[]): string {
  const [only] = values
  if (only === undefined) return ""
  if (values.length === 1) return singleText(only)
  let text = "@"
  for (const value of values) text += `${value.length}:${value}`
  return bounded(text)
}

/**
 * Compiles a rule's fields to what names the counter of a request. `readerOf` yields the reader of a field; it is asked
 * for "ip" too where that stands in for a missing one.
 *
 * One missing part makes a combination missing. Then, by `onMissing`: "ip" is "@ip:192.0.2.7", or where there is no
 * address the same as "shared"; "shared" is "@shared", one counter for all of them; "skip" is SKIP; "deny" names the
 * first field that is missing. No value that a client sends is the same as these.
 */
export function compilePartition(
  { fields, onMissing }: PartitionRule,
  readerOf: (field: string) => FieldReader,
): (facts: RequestFacts, request: unknown) => Partition {
  if (fields.length === 0) return () => ""
  const standIn = compileStandIn(onMissing, readerOf)
  const denials: readonly MissingField[] = fields.map((field) => ({ field }))
  const readers = fields.map(readerOf)
  if (readers.length === 1) {
    const read = readers[0] as FieldReader
    const denial = denials[0] as MissingField
    // An address has one spelling, in which there is nothing to look for.
    const isAddress = fields[0] === "ip"
    return (facts, request) => {
      const value = read(facts, request)
      if (value === undefined) return standIn(facts, request, denial)
      return isAddress ? value : singleText(value)
    }
  }
  return (facts, request) => {
    const values: string[] = []
    for (let index = 0; index < readers.length; index++) {
      const value = (readers[index] as FieldReader)(facts, request)
      if (value === undefined) return standIn(facts, request, denials[index] as MissingField)
      values.push(value)
    }
    return partitionText(values)
  }
}

function compileStandIn(
  onMissing: OnMissing,
  readerOf: (field: string) => FieldReader,
): (facts: RequestFacts, request: unknown, denial: MissingField) => Partition {
  switch (onMissing) {
    case "skip":
      return () => SKIP
    case "deny":
      return (_facts, _request, denial) => denial
    case "shared":
      return () => SHARED
    case "ip": {
      const readIp = readerOf("ip")
      return (facts, request) => {
        const address = readIp(facts, request)
        return address === undefined ? SHARED : `@ip:${address}`
      }
    }
  }
}

function singleText(value: string): string {
  const first = value.charCodeAt(0)
  // "@" and "#" begin what is not a client's own word.
  return bounded(first === 64 || first === 35 ? value[0] + value : value)
}

function bounded(text: string): string {
  if (text.length <= LONGEST_PARTITION && !/[\ud800-\udfff]/.test(text)) return text
  return `#${hash("sha256", Buffer.from(text, "utf16le"), "base64url")}`
}
