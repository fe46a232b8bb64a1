import { parseDictionary } from "structured-headers"
import { type Dialect, readingsOf } from "../reading.ts"

/** Reads `RateLimit: limit=100, remaining=50, reset=30` of draft 7, section 5. `reset` is in seconds from now. */
export const rateLimitMembers: Dialect = (headers) => {
  try {
    const members = parseDictionary(headers.get("ratelimit") ?? "")
    const [remaining, reset, limit] = ["remaining", "reset", "limit"].map(
      (name) => members.get(name)?.[0] as number,
    )
    return readingsOf(remaining as number, (reset as number) * 1000, limit)
  } catch {
    // A field that is not a dictionary is in another dialect.
    return []
  }
}
