import parseUrl from "parseurl"

/**
 * The path of a request target as rules compare it: "/Users//7%20a/?x=1" is "/users/7 a". Query and fragment are cut
 * off, segments decoded one by one, repeated slashes and the last one dropped, letters in lower case.
 *
 * An encoded slash stays "%2f", so it never makes a segment of its own, and a segment whose encoding is malformed
 * stays as it is. Dot segments stay too: no router resolves them.
 */
export function normalizePath(path: string): string {
  return withSingleSlashes(decoded(cutOff(path, /[?#]/), new Map()))
}

/**
 * Every path that a framework could route this request target to, or serve a file for, the usual one first. Ordinary targets
 * have one. More come from what Express, Koa and Fastify read differently: a backslash, a ";", repeated slashes and what looks
 * like a host; and from dot segments and encoded slashes, which mean to file servers what they mean to a file system.
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
  const parsed = routed(target)
  if (parsed !== undefined) readings.push(parsed)
  // That parser also reads "\" as "/" in an absolute target and in one with a fragment.
  for (const reading of [...readings])
    if (reading.includes("\\")) readings.push(reading.replaceAll("\\", "/"))
  const known = new Map<string, string>()
  const whole = readings.map((reading) => decoded(reading, known))
  // A wildcard in the middle of a pattern can take the empty segments between slashes.
  const withEmpty = whole.filter((path) => path.includes("//")).map(withoutLastSlash)
  const served = whole
    .map((path, at) => servedPath(readings[at] as string, path))
    .filter((path) => path !== undefined)
  return [...new Set([...whole.map(withSingleSlashes), ...withEmpty, ...served])]
}

/**
 * What Express and Koa route: by the parser of both, which takes "//user@host" for a host where there is a fragment, and whatever
 * no host has for a path. Where it throws or finds no path they route nothing.
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
 * Where the port of an absolute target begins that is none. That parser takes it for the begin of the path, and has Node warn of
 * it: what a client sends must not come into the log, nor end a process that throws for what is deprecated.
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

/** What comes before an authority, and the authority. */
const AUTHORITY = /^(\s*(?:[a-z0-9.+-]+:)?[/\\]{2})([^/\\?#]*)/i
/** Where that parser ends a host. */
const NOT_IN_HOST = /[\s"%';<>^`{|}]/

/** What file servers read in another way than routers. */
const IS_RESOLVED = /\\|\/\.\.?(?:\/|$)/

/** The file path that a reading of a target, decoded by segments, is; undefined where it is the same. */
function servedPath(reading: string, path: string): string | undefined {
  if (/%2f/i.test(reading)) return resolved(reading.split("/").map(decodeWhole).join("/").toLowerCase())
  return IS_RESOLVED.test(path) ? resolved(path) : undefined
}

/**
 * The path as `express.static` and its kin read it: an encoded slash is one, on Windows a backslash too, and dot segments lead to where
 * they do on disk.
 */
function resolved(path: string): string {
  const names: string[] = []
  for (const name of path.split(/[/\\]/)) {
    if (name === "..") names.pop()
    else if (name !== "" && name !== ".") names.push(name)
  }
  return `/${names.join("/")}`
}

/** Whether lower case and the last slash are all there is to normalize. */
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

/** The path with its segments decoded; `known` are those decoded before, as readings of one target share most. */
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

/** Asks before it decodes: thousands of malformed segments, each with an exception, would hold everybody else up. */
function decodeWhole(segment: string): string {
  return segment.replace(ESCAPED, "").includes("%") ? segment : decodeURIComponent(segment)
}

/** The same, with an encoded slash left as it is. */
function decode(segment: string): string {
  return decodeWhole(segment).replaceAll("/", "%2f")
}

/** The escapes of one character in well-formed UTF-8 (RFC 3629 section 4), which decodeURIComponent accepts. */
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
