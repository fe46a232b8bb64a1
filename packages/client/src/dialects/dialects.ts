import type { Dialect } from "../reading.ts"
import { openAi } from "./open-ai.ts"
import { rateLimitList } from "./rate-limit-list.ts"
import { rateLimitMembers } from "./rate-limit-members.ts"
import { rateLimitTriple } from "./rate-limit-triple.ts"
import { xRateLimit } from "./x-rate-limit.ts"

/** The dialects by name, in the order in which they are tried. */
export const DIALECTS: Readonly<Record<string, Dialect>> = {
  "draft-8": rateLimitList,
  "draft-7": rateLimitMembers,
  triple: rateLimitTriple,
  openai: openAi,
  "x-ratelimit": xRateLimit,
}
