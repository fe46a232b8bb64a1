import { type Kind, NotAccepted, url } from "./values.ts"

/**
 * The valid characters of a bearer token (RFC 6750 section 2.1). A client could never send a token with other
 * characters.
 */
const TOKEN = /^[\w.~+/-]{16,512}={0,4}$/

/** Tokens by service. Only the names of the services are logged. */
export const tokensByService: Kind<Readonly<Record<string, string>>> = {
  read: (text) =>
    readMembers(
      text,
      "tokens",
      'a JSON object with a token of 16 to 512 letters, digits and -._~+/ for each service, such as {"1": "…", "*": "…"}',
      (name, token) => name.length >= 1 && name.length <= 256 && TOKEN.test(token),
    ),
  show(tokens) {
    const services = Object.keys(tokens)
    return services.length > 0 ? `with the token of ${services.join(", ")}` : undefined
  },
}

const redisUrl = url(["redis:", "rediss:"], "redis://host:6379, or rediss:// with TLS")

/** The URL of one Redis server, or the URLs of nodes of a Redis Cluster. */
export const redisUrls: Kind<readonly string[]> = {
  // Split only before a URL, because a password may contain a comma.
  read: (text) => text.split(/\s*,\s*(?=rediss?:\/\/)/).map(redisUrl.read),
  show: (urls) => urls.map((each) => redisUrl.show?.(each)).join(","),
}

const MIRRORS_ACCEPTED =
  'a JSON object with the URL of Redis in each of the other data centers, such as {"eu": "redis://host:6379"}'

/** The URLs of Redis in other data centers, keyed by the name of the data center. */
export const mirrorUrls: Kind<Readonly<Record<string, readonly string[]>>> = {
  read(text) {
    const urls = readMembers(text, "URLs", MIRRORS_ACCEPTED, (name) => /^[\w.-]{1,64}$/.test(name))
    if (Object.keys(urls).length === 0) {
      throw new NotAccepted("is not a valid object of URLs: it has no members", MIRRORS_ACCEPTED)
    }
    return mapped(urls, (value, name) => {
      try {
        return redisUrls.read(value)
      } catch (error) {
        const { message, accepted } = error as NotAccepted
        throw new NotAccepted(`of ${JSON.stringify(name)} ${message}`, accepted)
      }
    })
  },
  show: (mirrors) => mapped(mirrors, (urls) => redisUrls.show?.(urls)),
}

function mapped<Value, Result>(
  object: Readonly<Record<string, Value>>,
  map: (value: Value, name: string) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value, name)]))
}

/**
 * Parses a JSON object whose members are strings that `isValid` accepts. Messages use `what` as the name of the
 * members.
 */
function readMembers(
  text: string,
  what: string,
  accepted: string,
  isValid: (name: string, member: string) => boolean,
): Readonly<Record<string, string>> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new NotAccepted("is not valid JSON", accepted)
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new NotAccepted(`is not a valid object of ${what}`, accepted)
  }
  const members = Object.entries(value)
  const wrong = members.filter(([name, member]) => typeof member !== "string" || !isValid(name, member))
  if (wrong.length === 0) return value as Readonly<Record<string, string>>
  // Show only the number of invalid members. If an operator has swapped names and values, a name is a secret.
  const message = `is not a valid object of ${what}: ${wrong.length} of its ${members.length} members are invalid`
  throw new NotAccepted(message, accepted)
}
