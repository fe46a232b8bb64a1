import type { LiveVerdict, LogRecord } from "./log.ts"

/** A record that may still change, because a later line may add its status, and sorting may change its time. */
export type OpenRecord = { -readonly [Member in keyof LogRecord]: LogRecord[Member] }

/** The facts of a line about a request. */
export interface LoggedRequest {
  readonly atMs: number
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly status?: number | undefined
  readonly address?: string | undefined
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>> | undefined
  readonly cookies?: Readonly<Record<string, string | undefined>> | undefined
  readonly named?: Readonly<Record<string, string | undefined>> | undefined
  readonly live?: LiveVerdict | undefined
}

/** Returns the record of a request. All records have the same members in the same order, which V8 reads fastest. */
export function recordOf(
  request: LoggedRequest,
  onlyFields: ReadonlySet<string>,
  file: number,
  line: number,
): OpenRecord {
  return {
    atMs: request.atMs,
    method: request.method,
    url: request.url,
    status: request.status,
    remoteAddress: request.address,
    headers: request.headers,
    cookies: request.cookies,
    named: request.named,
    live: request.live,
    onlyFields,
    file,
    line,
  }
}

/** Returns the status in a string of three digits; undefined for any other string. */
export function statusOf(text: string | undefined): number | undefined {
  if (text?.length !== 3) return undefined
  const status = Number(text)
  return Number.isInteger(status) && status >= 100 ? status : undefined
}

/** Returns the value of a string; undefined for "-" and "", which stand for a missing value. */
export function presentValue(text: string | undefined): string | undefined {
  return text === "-" || text === "" ? undefined : text
}
