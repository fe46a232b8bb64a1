import { hashText } from "../ground/hash.ts"
import type { OnMissing } from "../ground/policy.ts"
import type { FieldReader, RequestFacts } from "./request.ts"

/** The result for a request that the rule does not count. */
export const SKIP: unique symbol = Symbol("skip")

/** The missing field for which the rule refuses this request. */
export interface MissingField {
  readonly field: string
}

/** The text that identifies the counter of a request, or the reason why the request is not counted. */
export type Partition = string | typeof SKIP | MissingField

/** Returns the partition of a request. */
export type PartitionReader = (facts: RequestFacts, request: unknown) => Partition

/** True if the partition replaces a missing field. A client's own values never produce such a partition. */
export function isStandIn(partition: Partition): boolean {
  return typeof partition !== "string" || partition === SHARED || partition.startsWith("@ip:")
}

/** The longest string that is not hashed. A UUID, an API key or an e-mail address is not longer. */
export const LONGEST_PARTITION = 128

/** The counter that requests without the field share. */
export const SHARED = "@shared"

/** The members of a rule that define its partitions. */
export interface PartitionRule {
  /** Empty for a rule that counts the whole service. */
  readonly fields: readonly string[]
  readonly onMissing: OnMissing
}

/**
 * Returns the text of a counter. Different lists of values have different strings. A string has at most 128 UTF-16 units.
 *
 * | values | text |
 * | --- | --- |
 * | none: the whole service | empty |
 * | one | the value itself, with a leading "@" or "#" doubled |
 * | several | "@", then each with its length: `["7", "1.2.3.4"]` is `@1:77:1.2.3.4` |
 * | if the text is longer or contains a surrogate | "#" and 132 bits of its hash |
 *
 * Only the field `service` has an empty value. By itself it means the whole service. A lone surrogate
 * cannot be encoded in UTF-8, so all lone surrogates would look the same in a store's key.
 */
export function partitionText(values: readonly string[]): string {
  const [only] = values
  if (only === undefined) return ""
  if (values.length === 1) return singleText(only)
  let text = "@"
  for (const value of values) text += `${value.length}:${value}`
  return bounded(text)
}

/** A length in the text of several values, before the value itself. */
const LENGTH = /(\d+):/y

/**
 * Returns the values that the text of a counter (`partition`) contains, in the order of the rule's fields. Returns undefined
 * if the text contains no value of a field: a hash, a text that replaces a missing field ("@shared", "@ip:192.0.2.7"), or a
 * text that no rule produces.
 */
export function partitionValues(text: string): readonly string[] | undefined {
  if (text === "") return []
  if (/^(@@|##)/.test(text)) return [text.slice(1)]
  if (!/^[@#]/.test(text)) return [text]
  const values: string[] = []
  for (let at = 1; at < text.length; ) {
    LENGTH.lastIndex = at
    const [prefix, length] = LENGTH.exec(text) ?? []
    if (prefix === undefined) return undefined
    const from = at + prefix.length
    at = from + Number(length)
    values.push(text.slice(from, at))
  }
  // Another program may have written the text, with lengths that are wrong.
  return partitionText(values) === text ? values : undefined
}

/**
 * Returns a function that computes the partition of a request from a rule's fields. `readerOf` returns the reader of a
 * field. It is also called for "ip" if the address replaces a missing field.
 *
 * If one of the fields is missing, the whole combination counts as missing. Then `onMissing` decides. "ip" gives
 * "@ip:192.0.2.7", or the text of "shared" if there is no address. "shared" gives "@shared", one counter for all such
 * requests. "skip" gives SKIP. "deny" gives the first missing field.
 *
 * A client's value can never equal one of these results.
 */
export function compilePartition(
  { fields, onMissing }: PartitionRule,
  readerOf: (field: string) => FieldReader,
): PartitionReader {
  if (fields.length === 0) return () => ""
  const standIn = compileStandIn(onMissing, readerOf)
  const denials: readonly MissingField[] = fields.map((field) => ({ field }))
  const readers = fields.map(readerOf)
  if (readers.length === 1) {
    const read = readers[0] as FieldReader
    const denial = denials[0] as MissingField
    // Use an address unchanged, because its canonical spelling needs no escaping.
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
  // Double a leading "@" or "#", because these prefixes mark strings that are not a client's own value.
  return bounded(first === 64 || first === 35 ? value[0] + value : value)
}

function bounded(text: string): string {
  return text.length <= LONGEST_PARTITION && !/[\ud800-\udfff]/.test(text) ? text : hashText(text)
}
