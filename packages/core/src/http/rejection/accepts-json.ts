import preferredMediaTypes from "negotiator/lib/mediaType.js"

type Accept = string | readonly string[] | undefined

/**
 * The longest Accept header that is parsed, twice as long as the headers of browsers. A longer header is ignored,
 * because 1,000 hostile characters take 0.1 ms to parse.
 */
const MAX_LENGTH = 256

/**
 * The number of headers whose results are cached, because parsing a browser's header takes 5 µs. A service receives
 * only a handful of distinct headers.
 */
const MAX_REMEMBERED = 64

const JSON_TYPES: readonly string[] = ["application/problem+json", "application/json"]

/**
 * Whether a client accepts a JSON body according to its Accept header (RFC 9110, section 12.5.1). A client accepts
 * JSON if it sends no such header, or if the header contains `application/json`, `application/problem+json`, or a
 * wildcard that covers them. With a wildcard, a weight of 0 for one of the two types rules JSON out. Parameters of
 * the two types make no difference.
 */
export function acceptsJson(accept: Accept): boolean {
  if (accept === undefined) return true
  const text = typeof accept === "string" ? accept : accept.join(", ")
  if (text.trim() === "" || text.length > MAX_LENGTH) return true
  if (preferredMediaTypes(text).some((type) => JSON_TYPES.includes(type.toLowerCase()))) return true
  return preferredMediaTypes(text, JSON_TYPES).length === JSON_TYPES.length
}

/**
 * Returns an `acceptsJson` that caches its latest few dozen results in `remembered`. The function does not cache the
 * results of headers that are long or repeated.
 */
export function rememberJsonAcceptance(
  remembered: Map<string, boolean> = new Map(),
): (accept: Accept) => boolean {
  return (accept) => {
    if (accept === "*/*") return true
    if (typeof accept !== "string" || accept.length > MAX_LENGTH) return acceptsJson(accept)
    const known = remembered.get(accept)
    if (known !== undefined) return known
    if (remembered.size === MAX_REMEMBERED) remembered.clear()
    const accepted = acceptsJson(accept)
    remembered.set(accept, accepted)
    return accepted
  }
}
