import { type AddressRange, compileAddressRanges, parseAddressRange } from "../../ground/address.ts"

/**
 * Compiles a list of a field's values (`allow`, `deny` or a match) to a test of whether it contains a value. For `ip`,
 * the list holds addresses and CIDRs. The test takes the client's canonical address, not the group that it is counted
 * in. A list may therefore name a single address of a /64. Methods may be in any case. For any other field, the value
 * must equal an entry. The caller has checked that the entries of an `ip` list are addresses.
 */
export function compileValueList(field: string, values: readonly string[]): (value: string) => boolean {
  if (field === "ip")
    return compileAddressRanges(values.map((value) => parseAddressRange(value) as AddressRange))
  const listed = new Set(field === "method" ? values.map((method) => method.toUpperCase()) : values)
  return (value) => listed.has(value)
}
