import type { LogSummary } from "../logs/log.ts"
import { counted } from "../quantities.ts"
import type { ProxyHeader } from "./proxy-header.ts"

/** What every result says first. */
export const MAIN_NOTE =
  "The log shows what clients did without these rules. A refused client may retry, slow down or leave."

/** Says that addresses may be those of proxies. */
export function proxyNote({ isIgnored, names }: Pick<ProxyHeader, "isIgnored" | "names">): string[] {
  return isIgnored
    ? [
        `The log has the header ${names}, which is ignored. If clients come through proxies, give --trusted-proxies.`,
      ]
    : []
}

/** Says which lines of a log distort every result. */
export function lineNotes({ tooManyRequests, late }: Pick<LogSummary, "tooManyRequests" | "late">): string[] {
  return [
    ...(tooManyRequests > 0
      ? [
          `${counted(tooManyRequests, "request")} had status 429: another limiter refused them. They count as demand; --without-status 429 skips them.`,
        ]
      : []),
    ...(late > 0
      ? [
          `${counted(late, "line")} came too late to be sorted. Late lines count at the time of the line before. Raise --reorder.`,
        ]
      : []),
  ]
}
