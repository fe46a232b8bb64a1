import {
  ADDRESS_RANGE_ACCEPTED,
  type AddressRange,
  compileAddressRanges,
  parseAddressRange,
} from "../../ground/address.ts"
import { InvalidRuleError } from "../../ground/errors.ts"

/**
 * Compiles a list of a field's values, `allow`, `deny` or one of a match, to whether it names a value. For the field `ip` it
 * holds addresses and CIDRs, and is asked about the client's canonical address, not about the group that it is counted in: a list
 * may name a single address of a /64. Methods may be in any case. For any other field the value is equal to one in the list.
 *
 * Throws InvalidRuleError for an entry of an `ip` list that is no address: a deny list must not lose one silently.
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
