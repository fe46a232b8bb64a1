import type { RulesStatus } from "../rule-book.ts"
import type { LoadLoop } from "./load-loop.ts"
import { isRejection } from "./rule-snapshot.ts"
import type { Page } from "./service-rules.ts"

/** How far the rules of a page are to be trusted, by what is known of its loads. */
export function statusOf(
  page: Page | undefined,
  { loadedAtMs, isStale, error = page?.rejection }: Pick<LoadLoop, "loadedAtMs" | "isStale" | "error">,
  nowMs: number,
): RulesStatus {
  const { version, problems = [] } = page?.edition ?? {}
  return {
    ...(version !== undefined && { version }),
    ...(loadedAtMs !== undefined && { loadedAtMs }),
    ageMs: loadedAtMs === undefined ? Number.POSITIVE_INFINITY : nowMs - loadedAtMs,
    isStale,
    isRejected: error !== undefined && isRejection(error),
    problems,
    ...(error !== undefined && { error }),
  }
}
