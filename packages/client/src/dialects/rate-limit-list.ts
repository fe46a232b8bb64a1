import { parseList } from "structured-headers"
import { type Dialect, readingsOf } from "../reading.ts"

/** The wait for the next unit if a server does not say how long its units last. */
const UNKNOWN_SECONDS = 1

/**
 * Reads `RateLimit: "name";r=50;t=30` of the drafts 8 to 11 (draft-ietf-httpapi-ratelimit-headers-11, section 4), and
 * the text after them, in which `a` and `w` have the place of `r` and `t`. The quota is `q` of the policy of the same
 * name in `RateLimit-Policy`. Policies that count something else than requests are left out.
 */
export const rateLimitList: Dialect = (headers) => {
  const policies = new Map(itemsOf(headers, "ratelimit-policy"))
  return itemsOf(headers, "ratelimit").flatMap(([name, parameters]) => {
    const policy = policies.get(name)
    if ((policy?.get("qu") ?? "requests") !== "requests") return []
    const seconds = integerIn(parameters, "t", "w") ?? integerIn(policy, "w") ?? UNKNOWN_SECONDS
    return readingsOf(integerIn(parameters, "r", "a") ?? Number.NaN, seconds * 1000, integerIn(policy, "q"))
  })
}

type Parameters = ReadonlyMap<string, unknown>

/** Returns the Strings of a List with their parameters; none if the field is missing or malformed. */
function itemsOf(headers: Headers, name: string): [string, Parameters][] {
  try {
    return parseList(headers.get(name) ?? "").flatMap(([text, parameters]): [string, Parameters][] =>
      typeof text === "string" ? [[text, parameters]] : [],
    )
  } catch {
    return []
  }
}

function integerIn(parameters: Parameters | undefined, ...names: readonly string[]): number | undefined {
  const value = names.map((name) => parameters?.get(name)).find((found) => found !== undefined)
  return Number.isInteger(value) ? (value as number) : undefined
}
