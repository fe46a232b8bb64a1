import { canonicalAddress } from "../ground/address.ts"

/**
 * The header fields in which proxies list the addresses from which they received the request. Each proxy appends its
 * entry on the right.
 */
export type ForwardedHeader = "x-forwarded-for" | "forwarded"

/**
 * The maximum number of elements and characters that are read from the right. A client may have written any amount on
 * the left.
 */
const MOST_ELEMENTS = 50
const MOST_CHARACTERS = 8192

/**
 * Calls `visit` with the addresses of a forwarding header, from right to left. Stops when `visit` returns false, when
 * an element is not a valid address, or when the bounds are reached. Lines of a repeated header form one list, in
 * their order. Skips empty elements (RFC 9110 section 5.6.1).
 *
 * Reads from the right, because only the elements of trusted proxies are certainly well formed. Reading from the
 * left, an unclosed quote from the client would make these elements part of a quoted string.
 */
export function visitForwarded(
  name: ForwardedHeader,
  field: unknown,
  visit: (address: string) => boolean,
): void {
  const lines: readonly unknown[] = Array.isArray(field) ? field : [field]
  let elements = MOST_ELEMENTS
  let characters = MOST_CHARACTERS
  for (let index = lines.length - 1; index >= 0; index--) {
    const line = lines[index]
    if (typeof line !== "string") return
    const cut = line.length > characters
    const text = cut ? line.slice(line.length - characters) : line
    for (let end = text.length; end >= 0; ) {
      const comma = name === "forwarded" ? commaOutsideQuotes(text, end) : commaBefore(text, end)
      // Ignore the rest of a cut line, because it contains at most the end of an element.
      if (elements === 0 || (cut && comma === -1)) return
      elements -= 1
      const element = text.slice(comma + 1, end).trim()
      end = comma
      if (element === "") continue
      const node = name === "forwarded" ? forParameter(element) : element
      const address = node === undefined ? undefined : addressOfNode(node)
      if (address === undefined || !visit(address)) return
    }
    characters -= text.length
  }
}

/**
 * Returns the address of a node as proxies write it: bare, "192.0.2.1:4711", "[2001:db8::1]" or "[2001:db8::1]:4711".
 * The port may be obfuscated. Returns undefined for "unknown" and for an obfuscated name such as "_hidden" (RFC 7239
 * section 6).
 */
export function addressOfNode(node: string): string | undefined {
  if (node.startsWith("[")) {
    const close = node.indexOf("]")
    const inside = node.slice(1, close)
    return inside.includes(":") && isPort(node, close + 1) ? canonicalAddress(inside) : undefined
  }
  const colon = node.indexOf(":")
  if (colon === -1 || colon !== node.lastIndexOf(":")) return canonicalAddress(node)
  return isPort(node, colon) ? canonicalAddress(node.slice(0, colon)) : undefined
}

function isPort(node: string, from: number): boolean {
  return from === node.length || /^:(?:\d{1,5}|_[\w.-]{1,64})$/.test(node.slice(from))
}

function commaBefore(text: string, end: number): number {
  // lastIndexOf treats a negative position as 0 and would find a comma there.
  return end === 0 ? -1 : text.lastIndexOf(",", end - 1)
}

function commaOutsideQuotes(text: string, end: number): number {
  let quoted = false
  for (let index = end - 1; index >= 0; index--) {
    const character = text[index]
    if (character === "," && !quoted) return index
    if (character === '"' && !isEscaped(text, index)) quoted = !quoted
  }
  return -1
}

function isEscaped(text: string, index: number): boolean {
  let escaped = false
  for (let before = index - 1; text[before] === "\\"; before--) escaped = !escaped
  return escaped
}

/**
 * Matches at most one parameter, up to the next semicolon (RFC 7239 section 4). The pattern does not backtrack
 * exponentially, because no two of its repetitions can match the same string.
 */
const PARAMETER = /[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s";,]+))[ \t]*)?(?:;|$)/y

/** Returns the value of an element's `for`; undefined if it is missing or repeated, or if the element is malformed. */
function forParameter(element: string): string | undefined {
  let node: string | undefined
  PARAMETER.lastIndex = 0
  while (PARAMETER.lastIndex < element.length) {
    const found = PARAMETER.exec(element)
    if (found === null) return undefined
    if (found[1]?.toLowerCase() !== "for") continue
    if (node !== undefined) return undefined
    node = found[3] ?? (found[2] as string).replace(/\\(.)/g, "$1")
  }
  return node
}
