import { types } from "node:util"

/**
 * Returns the text without secrets: `redis://user:pw@host:6379` becomes `redis://…@host:6379`, and `user:pw@host`
 * becomes `…@host`. `https://host/rules?token=x` becomes `https://host/rules?…`, and `password=x` becomes `password=…`.
 *
 * Use this function for every string that may be logged. A client library may mistake a URL for a host or a path and
 * quote it in an error. May remove more than the secret, because a password may contain spaces, slashes and "@".
 * @example
 * ```ts
 * import { withoutCredentials } from "@sluice/core"
 *
 * withoutCredentials("connect ENOENT //user:pw@host:6379") // => "connect ENOENT //…@host:6379"
 * ```
 */
export function withoutCredentials(text: string): string {
  return text.split("\n").map(cleanLine).join("\n")
}

/**
 * Returns a thrown value without secrets. Strings are cleaned. If an error or another object contains a secret, also
 * in its causes or nested members, returns a copy. Returns any other value unchanged.
 *
 * Removes members that are nested deeper than 8 levels, and all members after about 200. Without these bounds, the
 * search could be endless, because an HTTP client's error may reference its sockets.
 */
export function errorWithoutCredentials(value: unknown): unknown {
  return cleanValue(value, { depth: 0, left: MOST_MEMBERS })
}

/** The maximum depth to which causes and members are searched. It is limited because an error may be its own cause. */
const DEEPEST = 8
/** The maximum number of members that are searched. */
const MOST_MEMBERS = 200

/** The current depth of the search, and the number of members that it may still check. */
interface Search {
  depth: number
  left: number
}

function cleanValue(value: unknown, search: Search): unknown {
  if (typeof value === "string") return withoutCredentials(value)
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value
  // Remove values that are too deep to search.
  if (search.depth > DEEPEST) return undefined
  search.depth++
  try {
    if (value instanceof URL) return cleanUrl(value)
    if (Array.isArray(value)) return cleanList(value, search)
    if (value instanceof Map || value instanceof Set) return cleanCollection(value, search)
    return cleanObject(value, search)
  } catch {
    // A Proxy threw, so the value cannot be searched.
    return undefined
  } finally {
    search.depth--
  }
}

/** Matches the end of a name whose value is a secret: `password`, `x-api-key`, `secretAccessKey`. */
export const SECRET_NAME =
  "(?:pass|passw(?:or)?d|passphrase|pwd|secret|token|credentials?|sig|signature|authorization|cookie|(?:api|access|private|secret)[-_]?key)"

const ENDS_IN_SECRET_NAME = new RegExp(`${SECRET_NAME}$`, "i")

/**
 * Matches `password=x`, `"password":"x"` and `password: 'x'`. After a colon, only a quoted value counts as a secret,
 * because a text such as "token: expected" contains no secret.
 */
const ASSIGNMENT = new RegExp(
  `(${SECRET_NAME}["']?\\s?(?:=(?!>)|(?:=>|:)\\s?(?=["'])))(?:"(?:[^"\\\\]|\\\\.)*"?|'(?:[^'\\\\]|\\\\.)*'?|\\S+)`,
  "gi",
)

/** The scope of our own packages. Messages contain package names, whose "@" does not end a user name. */
const OWN_PACKAGE = "@sluice/"

function cleanLine(line: string): string {
  return cleanUsers(line).split(/(\s+)/).map(cleanQuery).join("").replace(ASSIGNMENT, "$1…")
}

/** Replaces the whole query, as in `https://host/rules?…`, because any parameter may be a secret. */
function cleanQuery(word: string): string {
  const start = word.search(/[?&]/) + 1
  if (start === 0 || !(word.includes("=", start) || word.lastIndexOf("//", start) !== -1)) return word
  const query = word.slice(start)
  const after = /(?<![\])}>"'`,;:.])[\])}>"'`,;:.]*$/.exec(query)?.[0] ?? ""
  return after === query ? word : `${word.slice(0, start)}…${after}`
}

function cleanUsers(line: string): string {
  let at = line.lastIndexOf("@")
  while (at !== -1 && line.startsWith(OWN_PACKAGE, at)) at = at === 0 ? -1 : line.lastIndexOf("@", at - 1)
  return at === -1 ? line : cleanHead(line.slice(0, at + 1)) + line.slice(at + 1)
}

/** Removes the user and the password from `head`, which is a line up to its last "@". */
function cleanHead(head: string): string {
  const start = authorityStart(head)
  return start === -1 ? cleanWords(head) : `${cleanWords(head.slice(0, start))}…@`
}

/**
 * Returns the index at which the user name begins, or -1. The user name begins after the first "//" that has a ":"
 * after it, because a password may contain "//". Without such a "//", it begins after the last "//".
 */
function authorityStart(head: string): number {
  let last = -1
  const lastColon = head.lastIndexOf(":")
  for (let at = head.indexOf("//"); at !== -1; at = head.indexOf("//", at + 2)) {
    const start = at + 2
    // A file URL, such as `file:///work/.pnpm/ioredis@5`, does not contain a host.
    if (head[start] === "/" && head.endsWith("file:", at)) return -1
    if (lastColon >= start) return start
    last = start
  }
  return last
}

function cleanWords(text: string): string {
  return text
    .split(/(\s+)/)
    .map((word) => (hasCredentials(word) ? `…${word.slice(word.lastIndexOf("@"))}` : word))
    .join("")
}

/** True for `user:pw@host`, but not for `bob@example.com` or for the ARN of an assumed role. */
function hasCredentials(word: string): boolean {
  const at = word.lastIndexOf("@")
  return at !== -1 && word.slice(0, at).includes(":") && !/^["'(]*(?:arn:|file:\/\/\/)/.test(word)
}

function cleanObject(object: object, search: Search): object {
  const members = Reflect.ownKeys(object).map((name) => {
    const value = read(object, name)
    return { name, value, clean: value }
  })
  // Clean plain members, such as an error's name and code, before objects, which may use up the limit of the search.
  for (const isObject of [false, true]) {
    for (const member of members) {
      const { name, value } = member
      if ((typeof value === "object") === isObject) member.clean = cleanMember(name, value, search)
    }
  }
  if (members.every(({ value, clean }) => clean === value)) return object
  const isError = object instanceof Error || types.isNativeError(object)
  const copy: object = isError ? Object.setPrototypeOf(new Error(), Object.getPrototypeOf(object)) : {}
  for (const { name, clean } of members) {
    const enumerable = Object.prototype.propertyIsEnumerable.call(object, name)
    if (clean === undefined) Reflect.deleteProperty(copy, name)
    else Object.defineProperty(copy, name, { value: clean, enumerable, configurable: true, writable: true })
  }
  return copy
}

/** Returns a member's value, or undefined if its getter throws. */
function read(object: object, name: PropertyKey): unknown {
  try {
    return Reflect.get(object, name)
  } catch {
    return undefined
  }
}

function cleanMember(name: PropertyKey, value: unknown, search: Search): unknown {
  if (search.left-- <= 0) return undefined
  // Remove the failed command, which ioredis adds to the error, because the arguments of AUTH are a user and a
  // password.
  if (name === "command") return undefined
  if (typeof value === "string") {
    if (name === "stack") return cleanStack(value)
    if (ENDS_IN_SECRET_NAME.test(String(name))) return undefined
  }
  return cleanValue(value, search)
}

function cleanList(list: readonly unknown[], search: Search): readonly unknown[] {
  const clean = list.map((each, index) => cleanMember(index, each, search))
  return clean.some((each, index) => each !== list[index]) ? clean : list
}

function cleanCollection(collection: Map<unknown, unknown> | Set<unknown>, search: Search): unknown {
  const entries = [...collection]
  const clean = cleanList(entries, search)
  return clean === entries ? collection : clean
}

function cleanUrl(url: URL): unknown {
  const clean = withoutCredentials(url.href)
  return clean === url.href ? url : clean
}

/** Cleans all lines except stack frames, because an "@" in a module's path precedes a version. */
function cleanStack(stack: string): string {
  return stack
    .split("\n")
    .map((line) => (/^\s+at /.test(line) ? line : cleanLine(line)))
    .join("\n")
}
