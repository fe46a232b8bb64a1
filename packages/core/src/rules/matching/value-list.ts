import { type AddressRange, compileAddressTable, parseAddressRange, rangeKey } from "../../ground/address.ts"

/**
 * Compiles a table by a field's values into a function that returns the entry of a value in constant time. For `ip`,
 * the values are addresses and CIDRs, and the narrowest range wins. The function takes the client's canonical
 * address, not the network that is counted, so the table may contain a single address of a /64. Methods may be in any
 * case. For any other field, the request's value must equal the entry's value. The caller has checked that the values
 * of `ip` are addresses.
 */
export function compileValueTable<T>(
  field: string,
  entries: Iterable<readonly [string, T]>,
): (value: string) => T | undefined {
  const list = [...entries]
  if (field === "ip") {
    return compileAddressTable(
      list.map(([value, entry]) => [parseAddressRange(value) as AddressRange, entry]),
    )
  }
  const table = new Map(list.map(([value, entry]) => [canonicalValue(field, value), entry]))
  return (value) => table.get(value)
}

/**
 * Compiles a list of a field's values (`allow`, `deny` or a match) into a test of whether the list contains a value.
 */
export function compileValueList(field: string, values: readonly string[]): (value: string) => boolean {
  const listed = compileValueTable(
    field,
    values.map((value) => [value, true]),
  )
  return (value) => listed(value) === true
}

/** Returns the same string for all spellings of a field's value. */
export function canonicalValue(field: string, value: string): string {
  if (field === "method") {
    const method = value.toUpperCase()
    return method === "HEAD" ? "GET" : method
  }
  const range = field === "ip" ? parseAddressRange(value) : undefined
  return range === undefined ? value : rangeKey(range)
}
