import { count, counted } from "../quantities.ts"
import type { LogSummary } from "../reading/log.ts"
import type { ProxyHeader } from "./proxy-header.ts"

/** The notes at the start of every result. */
export const MAIN_NOTE =
  "The log shows what clients did without these rules. A refused client may retry, slow down or leave."

/** Returns the note that addresses may belong to proxies. */
export function proxyNote({ ignored }: Pick<ProxyHeader, "ignored">): string[] {
  return ignored === undefined
    ? []
    : [
        `The log contains the header ${ignored}, which is ignored. If clients come through proxies, give --trusted-proxies.`,
      ]
}

/** Returns the notes about lines of a log that distort every result. */
export function lineNotes({ tooManyRequests, late }: Pick<LogSummary, "tooManyRequests" | "late">): string[] {
  return [
    ...(tooManyRequests > 0
      ? [
          tooManyRequests === 1
            ? "1 request had status 429: another limiter refused it. It counts as demand; --without-status 429 skips it."
            : `${count(tooManyRequests)} requests had status 429: another limiter refused them. They count as demand; --without-status 429 skips them.`,
        ]
      : []),
    ...(late > 0
      ? [
          `${counted(late, "line")} came too late to be sorted. Late lines count at the time of the line before. Raise --reorder.`,
        ]
      : []),
  ]
}
