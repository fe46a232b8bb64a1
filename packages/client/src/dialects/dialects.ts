import type { Dialect } from "../reading.ts"
import { counters } from "./counters.ts"
import { modelTokens } from "./model-tokens.ts"
import { rateLimitList, rateLimitMembers } from "./rate-limit.ts"

/** The dialects by name, in the order in which they are tried. */
export const DIALECTS: Readonly<Record<string, Dialect>> = {
  "draft-8": rateLimitList,
  "draft-7": rateLimitMembers,
  triple: counters((field) => `ratelimit-${field}`),
  openai: modelTokens((field, unit) => `x-ratelimit-${field}-${unit}`),
  anthropic: modelTokens((field, unit) => `anthropic-ratelimit-${unit}-${field}`),
  "x-ratelimit": counters((field) => `x-ratelimit-${field}`),
  "x-rate-limit": counters((field) => `x-rate-limit-${field}`),
}
