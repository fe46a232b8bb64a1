import { readFileSync } from "node:fs"
import { NotAccepted } from "./not-accepted.ts"
import { type Read, url } from "./values.ts"

/**
 * A secret setting. It comes from the environment, or from a file that the environment names, because a command line is
 * visible to all users.
 */
export interface Secret<T> {
  readonly variable: string
  /** The variable with the path of a file that contains the secret. */
  readonly file: string
  readonly says: string
  readonly read: Read<T>
}

/** The characters of a bearer token (RFC 6750 section 2.1). A client could never send any other token. */
const TOKEN = /^[\w.~+/-]{16,512}={0,4}$/
const TOKENS_ACCEPTED =
  'a JSON object with a token of 16 to 512 letters, digits and -._~+/ for each service, such as {"1": "…", "*": "…"}'

/** Tokens by service, for callers that register rules. */
export const TOKENS: Secret<Readonly<Record<string, string>>> = {
  variable: "SLUICE_TOKENS",
  file: "SLUICE_TOKENS_FILE",
  says: 'tokens for registering rules: a JSON object with a token for each service, "*" for all: {"1": "…"}',
  read: readTokens,
}

/** Tokens by service, for callers that ask for decisions. */
export const DECIDE_TOKENS: Secret<Readonly<Record<string, string>>> = {
  variable: "SLUICE_DECIDE_TOKENS",
  file: "SLUICE_DECIDE_TOKENS_FILE",
  says: "tokens for asking for decisions, in the same form; without them, every caller may ask",
  read: readTokens,
}

function readTokens(text: string): Readonly<Record<string, string>> {
  const value = readObject(text, "tokens", TOKENS_ACCEPTED)
  const members = Object.entries(value)
  const wrong = members.filter(([name, token]) => !isName(name) || !isToken(token)).length
  if (wrong === 0) return value as Readonly<Record<string, string>>
  // Show only their number. If an operator has swapped names and tokens, a name is a token.
  const message = `is not a valid object of tokens: ${wrong} of its ${members.length} members are invalid`
  throw new NotAccepted(message, TOKENS_ACCEPTED)
}

/** Parses a JSON object. `what` names its members in messages. */
function readObject(text: string, what: string, accepted: string): object {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new NotAccepted("is not valid JSON", accepted)
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value
  throw new NotAccepted(`is not a valid object of ${what}`, accepted)
}

function isName(name: string): boolean {
  return name.length >= 1 && name.length <= 256
}

function isToken(token: unknown): boolean {
  return typeof token === "string" && TOKEN.test(token)
}

/** Split only before a URL, because a password may contain a comma. */
const NODE_SEPARATOR = /\s*,\s*(?=rediss?:\/\/)/
const redisUrl = url(["redis:", "rediss:"], "redis://host:6379, or rediss:// with TLS")

/** The URLs of Redis. */
export const REDIS_URL: Secret<readonly string[]> = {
  variable: "REDIS_URL",
  file: "REDIS_URL_FILE",
  says: "keep counters in this Redis: redis://user:password@host:6379/0, or rediss:// with TLS",
  read: (text) => text.split(NODE_SEPARATOR).map(redisUrl),
}

const MIRRORS_ACCEPTED =
  'a JSON object with the URL of Redis in each of the other data centers, such as {"eu": "redis://host:6379"}'

/** The URLs of Redis in other data centers, by their names. */
export const MIRRORS: Secret<Readonly<Record<string, readonly string[]>>> = {
  variable: "SLUICE_MIRRORS",
  file: "SLUICE_MIRRORS_FILE",
  says: 'also count in the Redis of other data centers: a JSON object of URLs: {"eu": "redis://host:6379"}',
  read(text) {
    const members = Object.entries(readObject(text, "URLs", MIRRORS_ACCEPTED))
    const isText = (member: readonly [string, unknown]): member is [string, string] =>
      /^[\w.-]{1,64}$/.test(member[0]) && typeof member[1] === "string"
    const urls = members.filter(isText)
    if (members.length === 0 || urls.length < members.length) {
      const message = `is not a valid object of URLs: ${members.length - urls.length} of its ${members.length} members are invalid`
      throw new NotAccepted(message, MIRRORS_ACCEPTED)
    }
    return Object.fromEntries(urls.map(([name, value]) => [name, readUrlsOf(name, value)]))
  },
}

function readUrlsOf(name: string, value: string): readonly string[] {
  try {
    return REDIS_URL.read(value)
  } catch (error) {
    if (!(error instanceof NotAccepted)) throw error
    throw new NotAccepted(`of ${JSON.stringify(name)} ${error.message}`, error.accepted)
  }
}

/**
 * Returns the value of a secret, or undefined if it is not given. Throws NotAccepted, whose message does not contain
 * the value.
 */
export function readSecret<T>(
  { variable, file, read }: Secret<T>,
  env: Readonly<Record<string, string | undefined>>,
): T | undefined {
  const text = given(env[variable])
  const path = given(env[file])
  if (text !== undefined && path !== undefined) {
    throw new NotAccepted(`is given together with ${file}`, `${variable} or ${file}`)
  }
  const found = path === undefined ? text : readText(path)
  return found === undefined ? undefined : read(found)
}

/** Treats an empty variable as not given, because a compose file cannot leave a variable out. */
function given(text: string | undefined): string | undefined {
  return text === "" ? undefined : text
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8").trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new NotAccepted(`is in ${JSON.stringify(path)}, which cannot be read: ${code}`, "a readable file")
  }
}
