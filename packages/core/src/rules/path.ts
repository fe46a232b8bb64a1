/**
 * The path of a request target as rules compare it: "/Users//7%20a/?x=1" is "/users/7 a". Query and fragment are cut
 * off, segments decoded one by one, repeated slashes and the last one dropped, letters in lower case.
 *
 * An encoded slash stays "%2f", so it never makes a segment of its own, and a segment whose encoding is malformed
 * stays as it is. Dot segments stay too: no router resolves them.
 */
export function normalizePath(path: string): string {
  return `/${segments(cutOff(path, /[?#]/)).filter(isNotEmpty).join("/")}`
}

/**
 * Every path that a framework could route this request target to, the usual one first. Ordinary targets have one.
 * More come from what Express, Koa and Fastify read differently: a backslash, a ";" and repeated slashes.
 *
 * Takes the target as it came, in origin form ("/login?next=/") or absolute form ("http://host/login", RFC 9112
 * section 3.2.2).
 */
export function pathReadings(target: string): readonly string[] {
  const query = target.indexOf("?")
  const plain = query === -1 ? target : target.slice(0, query)
  if (isPlain(plain)) return [withoutLastSlash(plain).toLowerCase()]

  // The URL parser behind Express and Koa trims its input: "/login" and a no-break space is "/login" there.
  const origin = originForm(target.trim())
  const readings = [cutOff(origin, /[?#]/)]
  if (origin.includes(";")) readings.push(cutOff(origin, /[?#;]/))
  // That parser also reads "\" as "/" in an absolute target and in one with a fragment.
  for (const reading of [...readings])
    if (reading.includes("\\")) readings.push(reading.replaceAll("\\", "/"))
  const paths = readings.map(normalizePath)
  // A wildcard in the middle of a pattern can take the empty segments between slashes.
  for (const reading of readings) {
    if (reading.includes("//")) paths.push(withoutLastSlash(segments(reading).join("/")))
  }
  return [...new Set(paths)]
}

/** Whether lower case and the last slash are all there is to normalize. */
function isPlain(path: string): boolean {
  return path.charCodeAt(0) === 47 && !NOT_PLAIN.test(path)
}
const NOT_PLAIN = /[^\w\-.~!$&'()*+,:=@/]|\/\//

function originForm(target: string): string {
  if (target.startsWith("/")) return target
  const scheme = target.indexOf("://")
  if (scheme === -1) return `/${target}`
  const rest = target.slice(scheme + 3)
  const start = rest.search(/[/\\?#]/)
  return start === -1 ? "/" : rest.slice(start).replace(/^(?=[?#])/, "/")
}

function segments(path: string): string[] {
  return path.split("/").map((segment) => decode(segment).toLowerCase())
}

function decode(segment: string): string {
  if (!segment.includes("%")) return segment
  try {
    return decodeURIComponent(segment).replaceAll("/", "%2f")
  } catch {
    return segment
  }
}

function cutOff(text: string, end: RegExp): string {
  const at = text.search(end)
  return at === -1 ? text : text.slice(0, at)
}

function isNotEmpty(segment: string): boolean {
  return segment !== ""
}

function withoutLastSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path
}
