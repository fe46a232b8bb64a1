import type { RequestFacts } from "@sluice/core"

/** One request in a log. Members that the format does not have are absent. */
export interface LogRecord extends RequestFacts {
  /** When the request arrived, in epoch milliseconds. Never smaller than in the record before. */
  readonly atMs: number
  /** The status of the response. */
  readonly status?: number | undefined
  /** Values for bare fields such as `user_id`, by name. Filled by `--map`. */
  readonly named?: Readonly<Record<string, string | undefined>> | undefined
  /** The app's own decision on the request, as `logFields` of @sluice/core has logged it. */
  readonly live?:
    | {
        /** False if the request was refused. */
        readonly allowed: boolean
        /** Name of the binding rule, "" if no rule applied. */
        readonly policy: string
        /** Names of shadow rules that would have refused. Absent if there are none. */
        readonly shadowed?: readonly string[] | undefined
      }
    | undefined
  /** Index of the file in `LogSummary.files`. */
  readonly file: number
  /** Number of the line in its file, from 1. */
  readonly line: number
}

export type LiveVerdict = NonNullable<LogRecord["live"]>

/** The numbers of lines and requests that have been read so far. The numbers only grow. */
export interface LogSummary {
  /** The files, in the order in which they were given. */
  readonly files: readonly {
    /** The name as given; "standard input" for "-". */
    readonly name: string
    /** Name of its format, such as "combined". Undefined until the first lines have been read. */
    readonly format: string | undefined
    /** Number of its lines. */
    readonly lines: number
  }[]
  /** Number of lines of all files. */
  readonly lines: number
  /** Requests that were passed on. */
  readonly requests: number
  /** Lines that are not in the format of their file. */
  readonly unparsed: number
  /** The first few of these lines, shortened, for messages. */
  readonly unparsedExamples: readonly {
    /** Name of the file. */
    readonly file: string
    /** Number of the line, from 1. */
    readonly line: number
    /** The beginning of the line. */
    readonly text: string
  }[]
  /**
   * Lines that are not requests: empty lines, other messages of an app, and requests that the server did not understand.
   * Also lines that `withoutStatus` excludes. `lines` is the sum of `requests`, `unparsed` and `skipped` at the end.
   */
  readonly skipped: number
  /** Lines that came after lines of a later time, but within the reorder time. */
  readonly reordered: number
  /** Milliseconds by which the line that was most out of order had to be moved. */
  readonly reorderedByMs: number
  /** Lines that came too late to be sorted. The lines are judged at the time of the line before. */
  readonly late: number
  /** Requests that another limiter refused: those with status 429 that were not refused by Sluice itself. */
  readonly tooManyRequests: number
  /** Coarsest resolution of the times of all formats, in milliseconds: 1,000 for common and combined logs. */
  readonly resolutionMs: number
  /** Time of the first request in epoch milliseconds; undefined if there are none. */
  readonly fromMs: number | undefined
  /** Time of the last request in epoch milliseconds; undefined if there are none. */
  readonly toMs: number | undefined
  /** Bytes that have been read, before decompression. */
  readonly bytes: number
  /** Bytes of all files together, before decompression. Undefined if standard input is read. */
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
  /** How much later than its time a line may come, in milliseconds. Default: 10 seconds. */
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
