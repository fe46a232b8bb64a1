import parseUrl from "parseurl"

/**
 * Returns the path of a request target in the form that rules compare: "/Users//7%20a/?x=1" is "/users/7 a". Removes
 * the query and the fragment, decodes each segment, removes repeated and trailing slashes, and changes the path to
 * lower case.
 *
 * An encoded slash stays "%2f", so it never starts a new segment. A segment with a malformed encoding stays as it is.
 * Dot segments also stay unchanged, because no router resolves them.
 */
export function normalizePath(path: string): string {
  return withSingleSlashes(decoded(cutOff(path, /[?#]/), new Map()))
}

/**
 * Returns every path for which a framework could route this request target or serve a file, the usual path first.
 * Ordinary targets have one path. Express, Koa and Fastify disagree about backslashes, ";", repeated slashes and
 * parts that look like a host. File servers also resolve dot segments and encoded slashes as a file system does.
 *
 * Takes the target as received, in origin form ("/login?next=/") or absolute form ("http://host/login", RFC 9112
 * section 3.2.2).
 */
export function pathReadings(target: string): readonly string[] {
  const query = target.indexOf("?")
  const plain = query === -1 ? target : target.slice(0, query)
  if (isPlain(plain)) return [withoutLastSlash(plain).toLowerCase()]

  // The URL parser of Express and Koa trims its input, so these frameworks route "/login" followed by a no-break
  // space as "/login".
  const origin = originForm(target.trim())
  const readings = [cutOff(origin, /[?#]/)]
  if (origin.includes(";")) readings.push(cutOff(origin, /[?#;]/))
  const parsed = routed(target)
  if (parsed !== undefined) readings.push(parsed)
  // The URL parser also reads "\" as "/" in an absolute target and in a target with a fragment.
  for (const reading of [...readings])
    if (reading.includes("\\")) readings.push(reading.replaceAll("\\", "/"))
  const known = new Map<string, string>()
  const whole = readings.map((reading) => decoded(reading, known))
  // A wildcard in the middle of a pattern can match the empty segments between slashes.
  const withEmpty = whole.filter((path) => path.includes("//")).map(withoutLastSlash)
  const served = whole
    .map((path, at) => servedPath(readings[at] as string, path))
    .filter((path) => path !== undefined)
  return [...new Set([...whole.map(withSingleSlashes), ...withEmpty, ...served])]
}

/**
 * Returns the path that Express and Koa route. Returns undefined if their shared parser throws or finds no path,
 * because the frameworks then route nothing. The parser takes "//user@host" for a host if there is a fragment. The
 * parser begins the path at the first character that a host cannot contain.
 */
function routed(target: string): string | undefined {
  const unsound = unsoundPort(target)
  if (unsound !== undefined) return cutOff(`/${target.slice(unsound)}`, /[?#]/)
  try {
    return parseUrl({ url: target })?.pathname ?? undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the index at which the invalid port of an absolute target begins, or undefined if it has no invalid port.
 * The parser takes an invalid port for the start of the path, and makes Node emit a deprecation warning. With such a
 * warning, a client could write to the log, or end a process that throws on deprecations.
 */
function unsoundPort(target: string): number | undefined {
  const [, before = "", authority] = AUTHORITY.exec(target) ?? []
  if (authority === undefined) return undefined
  const user = authority.lastIndexOf("@") + 1
  const host = cutOff(authority.slice(user), NOT_IN_HOST).replace(/:\d*$/, "")
  const colon = host.indexOf(":")
  if (colon === -1 || (host.startsWith("[") && host.endsWith("]"))) return undefined
  return before.length + user + colon
}

/** Captures the text before an authority, and the authority. */
const AUTHORITY = /^(\s*(?:[a-z0-9.+-]+:)?[/\\]{2})([^/\\?#]*)/i
/** Characters at which the URL parser of Express and Koa ends a host. */
const NOT_IN_HOST = /[\s"%';<>^`{|}]/

/** Matches backslashes and dot segments, which file servers resolve and routers do not. */
const IS_RESOLVED = /\\|\/\.\.?(?:\/|$)/

/**
 * Returns the file path of a reading, or undefined if it equals `path`. `path` is the reading with its segments
 * decoded.
 */
function servedPath(reading: string, path: string): string | undefined {
  if (/%2f/i.test(reading)) return resolved(reading.split("/").map(decodeWhole).join("/").toLowerCase())
  return IS_RESOLVED.test(path) ? resolved(path) : undefined
}

/**
 * Returns the path as `express.static` and similar file servers read it. An encoded slash becomes a slash, and dot
 * segments are resolved as in a file system. A backslash also becomes a slash, as on Windows.
 */
function resolved(path: string): string {
  const names: string[] = []
  for (const name of path.split(/[/\\]/)) {
    if (name === "..") names.pop()
    else if (name !== "" && name !== ".") names.push(name)
  }
  return `/${names.join("/")}`
}

/** True if normalizing the path only changes it to lower case and removes the trailing slash. */
function isPlain(path: string): boolean {
  return path.charCodeAt(0) === 47 && !NOT_PLAIN.test(path)
}
const NOT_PLAIN = /[^\w\-.~!$&'()*+,:=@/]|\/[/.]/

function originForm(target: string): string {
  if (target.startsWith("/")) return target
  const scheme = target.indexOf("://")
  if (scheme === -1) return `/${target}`
  const rest = target.slice(scheme + 3)
  const start = rest.search(/[/\\?#]/)
  return start === -1 ? "/" : rest.slice(start).replace(/^(?=[?#])/, "/")
}

/**
 * Returns the path with decoded segments. `known` caches segments, because the readings of a target share most of them.
 */
function decoded(path: string, known: Map<string, string>): string {
  if (!path.includes("%")) return path.toLowerCase()
  const segments = path.split("/").map((segment) => {
    if (!segment.includes("%")) return segment
    const normal = known.get(segment) ?? decode(segment)
    known.set(segment, normal)
    return normal
  })
  return segments.join("/").toLowerCase()
}

function withSingleSlashes(path: string): string {
  return withoutLastSlash(`/${path}`.replace(/\/{2,}/g, "/"))
}

/**
 * Returns the decoded segment, or the segment itself if its encoding is malformed. Tests the segment before decoding
 * it, because an exception for each of thousands of malformed segments would block the event loop.
 */
function decodeWhole(segment: string): string {
  return segment.replace(ESCAPED, "").includes("%") ? segment : decodeURIComponent(segment)
}

/** Decodes a segment as `decodeWhole` does, but keeps an encoded slash. */
function decode(segment: string): string {
  return decodeWhole(segment).replaceAll("/", "%2f")
}

/** Matches the escapes of one character in well-formed UTF-8 (RFC 3629 section 4), which decodeURIComponent accepts. */
const ESCAPED = new RegExp(
  [
    "%[0-7][0-9A-F]",
    "%(?:C[2-9A-F]|D[0-9A-F])TAIL",
    "%(?:E0%[AB][0-9A-F]|E[1-9A-CEF]TAIL|ED%[89][0-9A-F])TAIL",
    "%(?:F0%[9AB][0-9A-F]|F[1-3]TAIL|F4%8[0-9A-F])TAILTAIL",
  ]
    .join("|")
    .replaceAll("TAIL", "%[89AB][0-9A-F]"),
  "gi",
)

function cutOff(text: string, end: RegExp): string {
  const at = text.search(end)
  return at === -1 ? text : text.slice(0, at)
}

function withoutLastSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path
}
