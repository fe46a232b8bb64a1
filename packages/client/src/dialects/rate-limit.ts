import { type Dialect, msUntil, numberOf, readingsOf } from "../reading.ts"

/** A String of RFC 9651, section 3.3.3. */
const STRING = /^"(\\.|[^"\\])*"$/
/** A non-negative Integer of RFC 9651, section 3.3.1. */
const INTEGER = /^\d{1,15}$/

/**
 * Reads `RateLimit: "name";r=50;t=30` of the drafts 8 to 11 (draft-ietf-httpapi-ratelimit-headers-11, section 4), and
 * of the text after draft 11, in which `a` and `w` replace `r` and `t`. The quota is the `q` of the policy with the
 * same name in `RateLimit-Policy`. Ignores policies that count anything other than requests. Ignores a member that
 * the draft makes invalid: a name that is not a String, or a number that is not a non-negative Integer.
 */
export const rateLimitList: Dialect = (headers, nowMs) => {
  const policies = new Map(membersOf(headers, "ratelimit-policy"))
  return membersOf(headers, "ratelimit").flatMap(([name, parameters]) => {
    const policy = policies.get(name)
    const remaining = parameters.get("r") ?? parameters.get("a") ?? ""
    const time = parameters.get("t") ?? parameters.get("w")
    if (![STRING.test(name), INTEGER.test(remaining), INTEGER.test(time ?? "0")].every(Boolean)) return []
    if ((policy?.get("qu") ?? '"requests"') !== '"requests"') return []
    return readingsOf(
      numberOf(remaining),
      msUntil(time ?? policy?.get("w"), nowMs),
      numberOf(policy?.get("q")),
      numberOf(policy?.get("w")) * 1_000,
    )
  })
}

/** Reads `RateLimit: limit=100, remaining=50, reset=30` of draft 7, section 5. */
export const rateLimitMembers: Dialect = (headers, nowMs) => {
  const members = pairsOf(membersOf(headers, "ratelimit").map(([name]) => name))
  return readingsOf(
    numberOf(members.get("remaining")),
    msUntil(members.get("reset"), nowMs),
    numberOf(members.get("limit")),
  )
}

type Parameters = ReadonlyMap<string, string>

/**
 * Returns the members of a List or Dictionary with their parameters (RFC 9651), as they are written. In draft 7,
 * numbers that the RFC does not allow are accepted, because servers send them, and an ignored field would not slow
 * calls down.
 */
export function membersOf(headers: Headers, name: string): [string, Parameters][] {
  return split(headers.get(name) ?? "", ",").map((member) => {
    const [first = "", ...parameters] = split(member, ";")
    return [first, pairsOf(parameters)]
  })
}

function pairsOf(texts: readonly string[]): Parameters {
  return new Map(texts.map((text) => text.split("=") as [string, string]))
}

/** Splits at a separator that is not in a string. A string without a closing quote includes the rest of the field. */
function split(text: string, separator: string): string[] {
  const parts = text.match(new RegExp(`("(\\\\.|[^"\\\\])*"?|[^"${separator}])+`, "g")) ?? []
  return parts.map((part) => part.trim())
}
