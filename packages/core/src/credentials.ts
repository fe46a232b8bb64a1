/**
 * Returns the text without users and passwords: `redis://user:pw@host:6379` becomes `redis://…@host:6379`, and `user:pw@host`
 * becomes `…@host`. For every text that may end in a log: a client's library may read a URL as a host or a path and name it in its
 * own errors. In doubt it removes too much, because a password may contain spaces, slashes and more of "@".
 * @example
 * ```ts
 * import { withoutCredentials } from "@sluice/core"
 *
 * withoutCredentials("connect ENOENT //user:pw@host:6379") // => "connect ENOENT //…@host:6379"
 * ```
 */
export function withoutCredentials(text: string): string {
  return text.includes("@") ? text.split("\n").map(cleanLine).join("\n") : text
}

/**
 * Returns the error, or a copy of it when it holds credentials: in its message, in members that Node prints beside it such as
 * `address`, in its cause or in its `errors`. Anything else is returned as it is.
 */
export function errorWithoutCredentials(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return withoutCredentials(value)
  if (!(value instanceof Error)) return value
  // What nobody has looked into is left out.
  if (depth > DEEPEST_CAUSE) return undefined
  try {
    return cleanError(value, depth)
  } catch {
    // A getter of the error failed. What cannot be read is not printed either.
    return value
  }
}

/** Causes of causes that are looked into; an error may be its own cause. */
const DEEPEST_CAUSE = 8

/** Names of our own packages, which messages mention, follow an "@" too. */
const OWN_PACKAGE = "@sluice/"

function cleanLine(line: string): string {
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
  const members = Object.getOwnPropertyNames(error).map((name) => {
    const value = (error as unknown as Readonly<Record<string, unknown>>)[name]
    const clean = name === "stack" ? cleanStack(error) : cleanMember(name, value, depth)
    return { name, value, clean, enumerable: Object.prototype.propertyIsEnumerable.call(error, name) }
  })
  if (members.every(({ value, clean }) => clean === value)) return error
  const copy = new Error(withoutCredentials(error.message))
  Object.setPrototypeOf(copy, Object.getPrototypeOf(error))
  for (const { name, clean, enumerable } of members) {
    if (clean === undefined) delete (copy as unknown as Record<string, unknown>)[name]
    else Object.defineProperty(copy, name, { value: clean, enumerable, configurable: true, writable: true })
  }
  return copy
}

function cleanMember(name: string, value: unknown, depth: number): unknown {
  // ioredis puts the command that failed on the error: the arguments of AUTH are a user and a password.
  if (name === "command") return undefined
  if (!Array.isArray(value)) return errorWithoutCredentials(value, depth + 1)
  const clean = value.map((each) => errorWithoutCredentials(each, depth + 1))
  return clean.some((each, index) => each !== value[index]) ? clean : value
}

/** Only the message in front of the frames: paths of modules have an "@" that is no user's. */
function cleanStack({ stack, message }: Error): string | undefined {
  const clean = withoutCredentials(message)
  return clean === message ? stack : stack?.replace(message, () => clean)
}
