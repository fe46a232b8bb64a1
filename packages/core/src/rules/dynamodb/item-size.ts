import { InvalidRuleError } from "../../errors.ts"
import { type Attributes, bytesOf } from "./attribute-values.ts"

/** The largest item that DynamoDB stores, names of attributes included. */
const LARGEST_BYTES = 400 * 1024

/** Throws InvalidRuleError for an item that DynamoDB would not store. */
export function requireFitting(service: string, item: Attributes): void {
  const bytes = Object.entries(item).reduce((sum, [name, value]) => sum + bytesOf(name, value), 0)
  if (bytes > LARGEST_BYTES) throw tooLarge(service, bytes)
}

/** The error that an item is too large; of unknown size where others' attributes in it make it so. */
export function tooLarge(service: string, bytes: number | undefined, cause?: unknown): InvalidRuleError {
  const size = bytes === undefined ? "are, with what else their item has," : `are ${bytes} bytes,`
  const message = `of service ${JSON.stringify(service)} ${size} too large for an item of DynamoDB`
  const accepted = `up to ${LARGEST_BYTES} bytes: fewer or shorter rules`
  return new InvalidRuleError([{ path: "rules", message, accepted }], { cause })
}
