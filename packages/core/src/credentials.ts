import { inspect, types } from "node:util"

/**
 * Returns the text without secrets: `redis://user:pw@host:6379` becomes `redis://…@host:6379`, `user:pw@host` becomes `…@host`,
 * `https://host/rules?token=x` becomes `https://host/rules?…`, and `password=x` becomes `password=…`. Use it for every text that
 * may end in a log: the library of a client may take a URL for a host or a path and quote it in an error. If in doubt, the
 * function removes too much, because a password may contain spaces, slashes and "@".
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
 * Returns what was thrown without secrets. Strings are cleaned. An error with a secret in its message, its stack, its causes or
 * another member becomes a copy. Another object with a secret becomes the cleaned text that Node prints for it. Everything else
 * is returned unchanged.
 */
export function errorWithoutCredentials(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return withoutCredentials(value)
  if (typeof value !== "object" || value === null) return value
  // Remove what nobody has searched.
  if (depth > DEEPEST) return undefined
  try {
    if (Array.isArray(value)) return cleanList(value, depth)
    return value instanceof Error || types.isNativeError(value)
      ? cleanError(value, depth)
      : cleanObject(value)
  } catch {
    // A proxy or a custom inspect function failed, so nobody can search the value.
    return undefined
  }
}

/** How deep causes and members are searched. An error may be its own cause. */
const DEEPEST = 8

/** Ends of names whose values are secrets: `password`, `x-api-key`, `secretAccessKey`. */
const SECRET_NAME =
  "(?:pass|passw(?:or)?d|passphrase|pwd|secret|token|credentials?|sig|signature|authorization|cookie|(?:api|access|private|secret)[-_]?key)"

const ENDS_IN_SECRET_NAME = new RegExp(`${SECRET_NAME}$`, "i")

/** `password=x`, `"password":"x"` and `password: 'x'`. After a colon only a quoted value is a secret: "token: expected" is prose. */
const ASSIGNMENT = new RegExp(
  `(${SECRET_NAME}["']?\\s?(?:=(?!>)|(?:=>|:)\\s?(?=["'])))(?:"(?:[^"\\\\]|\\\\.)*"?|'(?:[^'\\\\]|\\\\.)*'?|\\S+)`,
  "gi",
)

/** Names of our own packages, which messages mention, follow an "@" too. */
const OWN_PACKAGE = "@sluice/"

function cleanLine(line: string): string {
  return cleanUsers(line).split(/(\s+)/).map(cleanQuery).join("").replace(ASSIGNMENT, "$1…")
}

/** `https://host/rules?token=x` becomes `https://host/rules?…`: any parameter may be a secret. */
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

/** `head` is a line up to its last "@". */
function cleanHead(head: string): string {
  const start = authorityStart(head)
  return start === -1 ? cleanWords(head) : `${cleanWords(head.slice(0, start))}…@`
}

/** Where the user begins: after the first "//" with a ":" after it, because a password may contain "//", else after the last. */
function authorityStart(head: string): number {
  let last = -1
  const lastColon = head.lastIndexOf(":")
  for (let at = head.indexOf("//"); at !== -1; at = head.indexOf("//", at + 2)) {
    const start = at + 2
    // `file:///work/.pnpm/ioredis@5` has no host.
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

/** `user:pw@host` has; `bob@example.com` has not, nor has the ARN of a role that somebody has assumed. */
function hasCredentials(word: string): boolean {
  const at = word.lastIndexOf("@")
  return at !== -1 && word.slice(0, at).includes(":") && !/^["'(]*(?:arn:|file:\/\/\/)/.test(word)
}

function cleanError(error: Error, depth: number): Error {
  const members = Reflect.ownKeys(error).map((name) => {
    const value = read(error, name)
    const clean =
      name === "stack" && typeof value === "string" ? cleanStack(value) : cleanMember(name, value, depth)
    return { name, value, clean, enumerable: Object.prototype.propertyIsEnumerable.call(error, name) }
  })
  if (members.every(({ value, clean }) => clean === value)) return error
  const copy = Object.setPrototypeOf(new Error(), Object.getPrototypeOf(error)) as Error
  for (const { name, clean, enumerable } of members) {
    if (clean === undefined) Reflect.deleteProperty(copy, name)
    else Object.defineProperty(copy, name, { value: clean, enumerable, configurable: true, writable: true })
  }
  return copy
}

/** Returns undefined for a getter that fails. */
function read(error: Error, name: PropertyKey): unknown {
  try {
    return Reflect.get(error, name)
  } catch {
    return undefined
  }
}

function cleanMember(name: PropertyKey, value: unknown, depth: number): unknown {
  // ioredis puts the command that failed on the error: the arguments of AUTH are a user and a password.
  if (name === "command") return undefined
  if (typeof value === "string" && ENDS_IN_SECRET_NAME.test(String(name))) return undefined
  return errorWithoutCredentials(value, depth + 1)
}

function cleanList(list: readonly unknown[], depth: number): unknown {
  const clean = list.map((each) => errorWithoutCredentials(each, depth + 1))
  return clean.some((each, index) => each !== list[index]) ? clean : list
}

/** Node's text has what loggers print, whatever the class: members of members, entries of a map, parts of a URL. */
function cleanObject(value: object): unknown {
  // One line for each member, because cleaning a line may remove the rest of it.
  const text = inspect(value, {
    depth: DEEPEST,
    compact: false,
    breakLength: Number.POSITIVE_INFINITY,
    maxStringLength: null,
  })
  const clean = withoutCredentials(text)
  return clean === text ? value : clean
}

/** Leaves the frames as they are, because an "@" in the path of a module precedes a version. */
function cleanStack(stack: string): string {
  return stack
    .split("\n")
    .map((line) => (/^\s+at /.test(line) ? line : cleanLine(line)))
    .join("\n")
}
