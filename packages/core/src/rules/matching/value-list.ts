import {
  ADDRESS_RANGE_ACCEPTED,
  type AddressRange,
  compileAddressRanges,
  parseAddressRange,
} from "../../ground/address.ts"
import { InvalidRuleError } from "../../ground/errors.ts"

/**
 * Compiles a list of a field's values (`allow`, `deny` or a match) to a test of whether it contains a value. For `ip`,
 * the list holds addresses and CIDRs. The test takes the client's canonical address, not the group that it is counted
 * in. A list may therefore name a single address of a /64. Methods may be in any case. For any other field, the value
 * must equal an entry.
 *
 * Throws InvalidRuleError if an entry of an `ip` list is not an address: a deny list must not lose an entry silently.
 */
export function compileValueList(field: string, values: readonly string[]): (value: string) => boolean {
  if (field === "ip") return compileAddressRanges(values.map(addressRange))
  const listed = new Set(field === "method" ? values.map((method) => method.toUpperCase()) : values)
  return (value) => listed.has(value)
}

function addressRange(text: string): AddressRange {
  const range = parseAddressRange(text)
  if (range !== undefined) return range
  const message = `${JSON.stringify(text)} is not an address`
  throw new InvalidRuleError([{ path: "", message, accepted: ADDRESS_RANGE_ACCEPTED }])
}
