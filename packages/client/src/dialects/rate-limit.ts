import { type Dialect, msUntil, numberOf, readingsOf } from "../reading.ts"

/**
 * Reads `RateLimit: "name";r=50;t=30` of the drafts 8 to 11 (draft-ietf-httpapi-ratelimit-headers-11, section 4), and
 * the text after them, in which `a` and `w` have the place of `r` and `t`. The quota is `q` of the policy of the same
 * name in `RateLimit-Policy`. Policies that count something else than requests are left out.
 */
export const rateLimitList: Dialect = (headers, nowMs) => {
  const policies = new Map(membersOf(headers, "ratelimit-policy"))
  return membersOf(headers, "ratelimit").flatMap(([name, parameters]) => {
    const policy = policies.get(name)
    if ((policy?.get("qu") ?? '"requests"') !== '"requests"') return []
    const forMs = msUntil(parameters.get("t") ?? parameters.get("w") ?? policy?.get("w"), nowMs)
    return readingsOf(numberOf(parameters.get("r") ?? parameters.get("a")), forMs, numberOf(policy?.get("q")))
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
 * Returns the members of a List or Dictionary with their parameters (RFC 9651), as they are written. Reads numbers that
 * the RFC does not allow, too, because servers send them, and a field that is not read lets all calls go.
 */
function membersOf(headers: Headers, name: string): [string, Parameters][] {
  return split(headers.get(name) ?? "", ",").map((member) => {
    const [first = "", ...parameters] = split(member, ";")
    return [first, pairsOf(parameters)]
  })
}

function pairsOf(texts: readonly string[]): Parameters {
  return new Map(texts.map((text) => text.split("=") as [string, string]))
}

/** Splits at a separator that is not in a string. A string without an end includes the rest of the field. */
function split(text: string, separator: string): string[] {
  const parts = text.match(new RegExp(`("(\\\\.|[^"\\\\])*"?|[^"${separator}])+`, "g")) ?? []
  return parts.map((part) => part.trim())
}
