import { parseDictionary } from "structured-headers"
import { type Dialect, readingOf } from "../reading.ts"

/** Reads `RateLimit: limit=100, remaining=50, reset=30` of draft 7, section 5. `reset` is in seconds from now. */
export const rateLimitMembers: Dialect = (headers) => {
  try {
    const members = parseDictionary(headers.get("ratelimit") ?? "")
    const [remaining, reset, limit] = ["remaining", "reset", "limit"].map(
      (name) => members.get(name)?.[0] as number,
    )
    const reading = readingOf(remaining as number, (reset as number) * 1000, limit)
    return reading && [reading]
  } catch {
    // A field that is not a dictionary is in another dialect.
    return undefined
  }
}
