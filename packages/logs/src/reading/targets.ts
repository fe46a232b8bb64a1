/** The method and the target in the first line of a request. */
export interface RequestLine {
  readonly method: string
  readonly url: string
}

/**
 * Returns the target as a server behind a proxy receives it: an absolute target is reduced to its path and its query.
 * "*" and the target of CONNECT stay unchanged.
 */
export function relativeTarget(target: string): string {
  if (target.charCodeAt(0) === 47) return target
  const scheme = target.indexOf("://")
  if (scheme === -1 || !isToken(target, 0, scheme)) return target
  const rest = target.slice(scheme + 3)
  const start = rest.search(/[/?#]/)
  if (start === -1) return "/"
  return rest[start] === "/" ? rest.slice(start) : `/${rest.slice(start)}`
}

/**
 * Reads "GET /path HTTP/1.1". Returns undefined if the text is not the first line of a request, such as TLS bytes
 * that a client sent to a port without TLS. An app never sees such bytes.
 */
export function requestLine(text: string): RequestLine | undefined {
  const space = text.indexOf(" ")
  const end = text.lastIndexOf(" ")
  if (space === end || !isToken(text, 0, space) || !text.startsWith("HTTP/", end + 1)) return undefined
  const target = text.slice(space + 1, end)
  return target.trim() === "" ? undefined : { method: text.slice(0, space), url: relativeTarget(target) }
}

/** True if the text between two positions can be a method: letters, "-" and "_", at most 32 of them. */
export function isToken(text: string, from: number, to: number): boolean {
  if (to <= from || to - from > 32) return false
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at)
    const lower = code | 32
    if ((lower < 97 || lower > 122) && code !== 45 && code !== 95) return false
  }
  return true
}
