import { InvalidOptionError } from "@sluice/core"
import { clientAddressReader } from "@sluice/core/adapters"
import { type ListenAddress, shownAddress } from "../../sockets/listening.ts"

/** A kind of value that a setting may have. */
export interface Kind<T> {
  /** Parses a string. Throws NotAccepted if the string is invalid. */
  read(text: string): T
  /** Returns the value in a form that is safe to log. If absent, the value itself is safe to log. */
  show?(value: T): unknown
}

/**
 * An error for a string that is not a valid value of a setting. The error does not contain the text, which may be a
 * secret.
 */
export class NotAccepted extends Error {
  override readonly name = "NotAccepted"
  /** The accepted values. */
  readonly accepted: string

  /** `is` describes the problem and begins with a verb, because the name and value of the setting precede it. */
  constructor(is: string, accepted: string) {
    super(is)
    this.accepted = accepted
  }
}

const ADDRESS = "host:port, such as 127.0.0.1:8080 or [::1]:8080; port 0 picks a free port"

/** An address: "127.0.0.1:8080", "[::1]:8080", "localhost:0". */
export const address: Kind<ListenAddress> = {
  read(text) {
    const found = /^(?:\[([\da-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i.exec(text)
    const port = Number(found?.[3])
    if (found === null || port > 65_535) throw new NotAccepted("is not a valid address", ADDRESS)
    return { host: (found[1] ?? found[2]) as string, port }
  },
  show: shownAddress,
}

/** A list of trusted proxies: "loopback,10.0.0.0/8". */
export const proxies: Kind<readonly string[]> = {
  read(text) {
    const list = text.split(",").map((each) => each.trim())
    try {
      clientAddressReader({ trustedProxies: list })
      return list
    } catch (error) {
      if (!(error instanceof InvalidOptionError)) throw error
      const [problem] = error.problems
      throw new NotAccepted(`is not a valid list: ${problem?.message}`, problem?.accepted ?? "")
    }
  },
}

const UNITS = { ms: 1, s: 1_000, m: 60_000 } as const
/** The longest delay of a Node timer, in milliseconds. */
const LONGEST_MS = 2 ** 31 - 1

/**
 * Creates a kind that converts durations such as "50ms", "5s" and "2m" to milliseconds. The unit is required, so that
 * the duration cannot be misunderstood. "0" is accepted if `least` is 0.
 */
export function duration(least: 0 | 1 | 1_000, most: number = LONGEST_MS): Kind<number> {
  return {
    read(text) {
      const found = /^(\d{1,10})(ms|s|m)$/.exec(text === "0" ? "0ms" : text)
      const ms = found === null ? Number.NaN : Number(found[1]) * UNITS[found[2] as keyof typeof UNITS]
      if (ms >= least && ms <= most) return ms
      const from = least === 0 ? "0, or " : ""
      throw new NotAccepted(
        "is not a valid time",
        most === LONGEST_MS
          ? `${from}a whole number with its unit: 50ms, 5s, 2m (up to 24 days)`
          : `from ${least / 1_000}s to ${most / 60_000}m, with its unit: 30s, 2m`,
      )
    },
  }
}

/** Creates a kind that accepts integers from `least` to `most`. */
export function whole(least: number, most: number): Kind<number> {
  return {
    read(text) {
      const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
      if (number >= least && number <= most) return number
      throw new NotAccepted("is not a valid number", `a whole number from ${least} to ${most}`)
    },
  }
}

/** Creates a kind that accepts only these words. */
export function oneOf<Word extends string>(...words: readonly Word[]): Kind<Word> {
  return {
    read(text) {
      const word = words.find((each) => each === text)
      if (word !== undefined) return word
      throw new NotAccepted("is not a valid choice", words.join(", "))
    },
  }
}

/** The kind that accepts "true" and "false". */
export const yesOrNo: Kind<boolean> = { read: (text) => oneOf("true", "false").read(text) === "true" }

/** Creates a kind that accepts strings which match `pattern`. */
export function matching(pattern: RegExp, is: string, accepted: string): Kind<string> {
  return {
    read(text) {
      if (pattern.test(text)) return text
      throw new NotAccepted(is, accepted)
    },
  }
}

/** Creates a kind that accepts URLs with one of these protocols, and returns them as strings. */
export function url(protocols: readonly string[], accepted: string): Kind<string> {
  return {
    read(text) {
      const parsed = URL.canParse(text) ? new URL(text) : undefined
      if (parsed === undefined || !protocols.includes(parsed.protocol)) {
        // Show the scheme only before "//". Otherwise, the text before the colon may be a host, a user or a password.
        const hasScheme = parsed !== undefined && /^[a-z][\w+.-]*:\/\//i.test(text)
        const is = hasScheme ? `has the scheme ${parsed.protocol}` : "is not a valid URL for this setting"
        throw new NotAccepted(is, accepted)
      }
      // Check the escapes here, because the Redis client decodes user and password, and its error would not mention
      // the setting.
      if (![parsed.username, parsed.password].every(isDecodable)) {
        throw new NotAccepted(
          "has a % in its user or password that does not start a valid escape",
          "%25 instead of each %",
        )
      }
      return text
    },
    // Omit the user, the password and the parameters, because they may be secret.
    show(text) {
      const { protocol, username, password, host, pathname } = new URL(text)
      return `${protocol}//${username === "" && password === "" ? "" : "***@"}${host}${pathname}`
    },
  }
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
