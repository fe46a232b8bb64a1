import type { RequestFacts } from "@sluice/core"

/** One request in a log. Members that the format does not log are absent. */
export interface LogRecord extends RequestFacts {
  /** When the request arrived, in epoch milliseconds. Never earlier than the previous record. */
  readonly atMs: number
  /** The status of the response. */
  readonly status?: number | undefined
  /** Values for bare fields such as `user_id`, by name. Filled by `--map`. */
  readonly named?: Readonly<Record<string, string | undefined>> | undefined
  /** The app's own decision on the request, as logged by `logFields` of @sluice/core. */
  readonly live?:
    | {
        /** False if the request was refused. */
        readonly allowed: boolean
        /** Name of the binding rule, "" if no rule applied. */
        readonly policy: string
        /** Names of shadow rules that would have refused. Absent if no shadow rule would have refused. */
        readonly shadowed?: readonly string[] | undefined
      }
    | undefined
  /** Index of the file in `LogSummary.files`. */
  readonly file: number
  /** Number of the line in its file, from 1. */
  readonly line: number
}

export type LiveVerdict = NonNullable<LogRecord["live"]>

/** The numbers of lines and requests that have been read so far. They never decrease. */
export interface LogSummary {
  /** The files, in the order in which they were given. */
  readonly files: readonly {
    /** The name as given; "standard input" for "-". */
    readonly name: string
    /** Name of the file's format, such as "combined". Undefined until the first lines have been read. */
    readonly format: string | undefined
    /** Number of lines in the file. */
    readonly lines: number
  }[]
  /** Number of lines of all files. */
  readonly lines: number
  /** Number of requests that were returned. */
  readonly requests: number
  /** Number of lines that do not match the format of their file. */
  readonly unparsed: number
  /** The first few unparsed lines, shortened for messages. */
  readonly unparsedExamples: readonly {
    /** Name of the file. */
    readonly file: string
    /** Number of the line, from 1. */
    readonly line: number
    /** The beginning of the line. */
    readonly text: string
  }[]
  /**
   * Number of lines that are not requests: empty lines, other messages of an app, and requests that the server did
   * not understand. Lines that `withoutStatus` excludes count as well. `lines` is the sum of `requests`, `unparsed`
   * and `skipped` at the end.
   */
  readonly skipped: number
  /** Number of lines that followed a line with a later time, but within the reorder time. */
  readonly reordered: number
  /** The largest distance by which a line was out of order, in milliseconds. */
  readonly reorderedByMs: number
  /** Number of lines that came too late to be sorted. Each late line gets the time of the previous line. */
  readonly late: number
  /** Number of requests with status 429 that another limiter refused, and not Sluice itself. */
  readonly tooManyRequests: number
  /**
   * The coarsest resolution of the times in all formats, in milliseconds. For common and combined logs, it is 1,000.
   */
  readonly resolutionMs: number
  /** Time of the first request in epoch milliseconds; undefined if there are no requests. */
  readonly fromMs: number | undefined
  /** Time of the last request in epoch milliseconds; undefined if there are no requests. */
  readonly toMs: number | undefined
  /** Number of bytes that have been read, before decompression. */
  readonly bytes: number
  /** Total size of all files in bytes, before decompression. Undefined if standard input is read. */
  readonly allBytes: number | undefined
}

/** Options of `readLogs`. */
export interface ReadLogOptions {
  /** A format line of nginx (`log_format`) or Apache (`LogFormat`), or the name of a format. Default: detected. */
  readonly format?: string | undefined
  /**
   * Where to read more fields, by field name: `ip=client.addr`, `user_id=remote_user`, `time=ts`. In JSON lines, the
   * source is a path; in other formats, it is the name of a variable of the format.
   */
  readonly map?: Readonly<Record<string, string>> | undefined
  /** The maximum time in milliseconds by which a line may be out of order. Default: 10 seconds. */
  readonly reorderMs?: number | undefined
  /** Lines with one of these statuses are skipped. */
  readonly withoutStatus?: readonly number[] | undefined
}

/** Logs that are being read. Iterate them once. */
export interface Logs extends AsyncIterable<readonly LogRecord[]> {
  /** The numbers of lines and requests that have been read so far. */
  readonly summary: LogSummary
}

export type LogFile = LogSummary["files"][number]
