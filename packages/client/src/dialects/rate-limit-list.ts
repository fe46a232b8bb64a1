import { parseList } from "structured-headers"
import { type Dialect, type Reading, readingOf } from "../reading.ts"

/** The wait for the next unit if a server does not say how long its units last. */
const UNKNOWN_SECONDS = 1

/**
 * Reads `RateLimit: "name";r=50;t=30` of the drafts 8 to 11 (draft-ietf-httpapi-ratelimit-headers-11, section 4), and
 * the text after them, in which `a` and `w` have the place of `r` and `t`. The quota is `q` of the policy of the same
 * name in `RateLimit-Policy`. Policies that count something else than requests are left out.
 */
export const rateLimitList: Dialect = (headers) => {
  const limits = itemsOf(headers.get("ratelimit"))
  if (limits === undefined) return undefined
  const policies = new Map(itemsOf(headers.get("ratelimit-policy")))
  const readings: Reading[] = []
  for (const [name, parameters] of limits) {
    const policy = policies.get(name)
    if ((policy?.get("qu") ?? "requests") !== "requests") continue
    const remaining = integerIn(parameters, "r", "a")
    const seconds = integerIn(parameters, "t", "w") ?? integerIn(policy, "w") ?? UNKNOWN_SECONDS
    const reading = readingOf(remaining ?? Number.NaN, seconds * 1000, integerIn(policy, "q"))
    if (reading !== undefined) readings.push(reading)
  }
  return readings.length > 0 ? readings : undefined
}

type Parameters = ReadonlyMap<string, unknown>

/** Returns the Strings of a List with their parameters; undefined if the field is missing or malformed. */
function itemsOf(field: string | null): [string, Parameters][] | undefined {
  if (field === null) return undefined
  try {
    return parseList(field).flatMap(([name, parameters]): [string, Parameters][] =>
      typeof name === "string" ? [[name, parameters]] : [],
    )
  } catch {
    return undefined
  }
}

function integerIn(parameters: Parameters | undefined, ...names: readonly string[]): number | undefined {
  const value = names.map((name) => parameters?.get(name)).find((found) => found !== undefined)
  return Number.isInteger(value) ? (value as number) : undefined
}
