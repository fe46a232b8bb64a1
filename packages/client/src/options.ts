import { durationMs } from "./duration.ts"
import { PaceError } from "./pace-error.ts"
import { LONGEST_TIMER_MS } from "./watch.ts"

/** The longest backoff after refusals that contain no wait. */
export const LONGEST_BACKOFF_MS = 60_000

/** How {@link paced} paces and repeats calls. All options are optional. */
export interface PacedOptions {
  /**
   * Returns the key of a request. Calls with the same key share a quota. The given request has no body. Default: the
   * origin of the request and a fingerprint of its `Authorization` or `X-Api-Key` header. If more than 10,000 keys have
   * no calls, the least recently used half is forgotten, with its blocks.
   */
  readonly key?: ((request: Request) => string) | undefined
  /**
   * The longest total time that a call waits, in milliseconds. A call that would wait longer fails immediately.
   * Default: 30,000.
   */
  readonly maxWaitMs?: number | undefined
  /** The maximum number of calls of one key that wait. Further calls fail immediately. Default: 1,000. */
  readonly maxWaiting?: number | undefined
  /**
   * The maximum number of retries of a call. A call is retried after 429, after 503 with `Retry-After`, or if no
   * connection was made. Default: 3.
   */
  readonly retries?: number | undefined
  /**
   * The first wait of a key after a 429 that contains no wait, in milliseconds, at most 60,000. The wait doubles with
   * each consecutive 429 of this kind, up to a minute, and is jittered upward. Default: 0, so such a call is not sent
   * again.
   */
  readonly backoffMs?: number | undefined
  /** The share of all calls of a key that may be retries, from 0 to 1. The first 10 retries are free. Default: 0.1. */
  readonly retryBudget?: number | undefined
  /**
   * Whether a request may be sent again. Default: each request after 429, because it was not processed. In other
   * cases, only GET, HEAD, OPTIONS, PUT and DELETE, and requests with `Idempotency-Key`. The given request has no
   * body.
   */
  readonly idempotent?: ((request: Request) => boolean) | undefined
  /**
   * The maximum number of calls of one key in any window, such as `{ limit: 100, window: "1 minute" }`, whatever the
   * responses contain. Use it for servers that send no headers. Default: no limit.
   */
  readonly limit?:
    | {
        /** The number of calls, from 1 to a million. */
        readonly limit: number
        /** The window in which these calls may leave, such as "1 minute", or in milliseconds. */
        readonly window: string | number
      }
    | undefined
  /**
   * Paces several processes together, usually with a limiter. Each call waits for `acquire` before it is sent. Use it for
   * more than two busy processes: without it, five have nearly a tenth of their calls refused.
   */
  readonly share?:
    | {
        /** Resolves once a call of the key may be sent. It must stop waiting when the signal is aborted. */
        acquire(key: string, signal?: AbortSignal): Promise<unknown>
      }
    | undefined
}

/** Options of a single call, which override those of the fetch: `api(url, { pace: { maxWaitMs: 0 } })`. */
export interface CallPace {
  /** The key of this call, instead of the result of the option `key`. */
  readonly key?: string | undefined
  /** The longest total time that this call waits, in milliseconds. If 0, the call fails instead of waiting. */
  readonly maxWaitMs?: number | undefined
  /** The maximum number of retries of this call. */
  readonly retries?: number | undefined
}

/** The options with their defaults. */
export interface ParsedPacedOptions extends Omit<Required<PacedOptions>, "limit"> {
  readonly maxWaitMs: number
  readonly maxWaiting: number
  readonly retries: number
  readonly backoffMs: number
  readonly retryBudget: number
  readonly limit: { readonly limit: number; readonly windowMs: number } | undefined
}

/** The options of a call, completed from {@link PacedOptions}. */
interface ParsedCallPace {
  readonly key: string | undefined
  readonly maxWaitMs: number
  readonly retries: number
}

/** The largest accepted value of each option that is a whole number. */
const MOST: Readonly<Record<string, number>> = {
  maxWaitMs: LONGEST_TIMER_MS,
  maxWaiting: LONGEST_TIMER_MS,
  retries: 1_000,
  backoffMs: LONGEST_BACKOFF_MS,
  limit: 1_000_000,
}

const DEFAULTS: Omit<ParsedPacedOptions, "limit"> & Pick<PacedOptions, "limit"> = {
  ...{ maxWaitMs: 30_000, maxWaiting: 1_000, retries: 3, backoffMs: 0, retryBudget: 0.1 },
  ...{ key: undefined, idempotent: undefined, limit: undefined, share: undefined },
}

/** @throws {@link PaceError} with the code SLUICE_INVALID_OPTION */
export function parseOptions(options: PacedOptions): ParsedPacedOptions {
  const parsed = withDefaults("paced", options, DEFAULTS)
  const { key, idempotent, retryBudget, share } = parsed
  for (const [name, value] of Object.entries({ key, idempotent }))
    check(value === undefined || typeof value === "function", name, value, "a function of the request")
  check(retryBudget >= 0 && retryBudget <= 1, "retryBudget", retryBudget, "a number from 0 to 1")
  check(
    share === undefined || typeof share?.acquire === "function",
    "share",
    share,
    "{ acquire(key, signal) }",
  )
  return { ...parsed, limit: parseLimit(parsed.limit) }
}

/** @throws {@link PaceError} with the code SLUICE_INVALID_OPTION */
export function parseCallPace(pace: CallPace, { maxWaitMs, retries }: ParsedPacedOptions): ParsedCallPace {
  return withDefaults<ParsedCallPace>("pace", pace, { key: undefined, maxWaitMs, retries })
}

function parseLimit(given: PacedOptions["limit"]): ParsedPacedOptions["limit"] {
  if (given === undefined) return undefined
  const { limit, window } = withDefaults<{ limit: number; window: string | number }>("limit", given, {
    limit: 0,
    window: 0,
  })
  const windowMs = typeof window === "number" ? window : durationMs(String(window))
  const accepted = '{ limit: 100, window: "1 minute" }, with a limit above 0'
  check(limit >= 1 && windowMs > 0 && Number.isFinite(windowMs), "limit", given, accepted)
  return { limit, windowMs }
}

function withDefaults<Parsed extends object>(of: string, options: object, defaults: Parsed): Parsed {
  const names = Object.keys(defaults).join(", ")
  check(typeof options === "object" && options !== null, of, options, `{ ${names} }`)
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  for (const [name, value] of given) {
    check(Object.hasOwn(defaults, name), of, `"${name}"`, names)
    const most = of === "paced" && name === "limit" ? undefined : MOST[name]
    const isWhole = Number.isInteger(value) && value >= 0 && value <= (most as number)
    check(
      most === undefined || isWhole,
      of === "paced" ? name : `${of}.${name}`,
      value,
      `a whole number from 0 to ${most}`,
    )
  }
  return { ...defaults, ...Object.fromEntries(given) }
}

/** @throws {@link PaceError} with the code SLUICE_INVALID_OPTION if a value is not valid */
export function check(isValid: boolean, path: string, value: unknown, accepted: string): void {
  if (isValid) return
  const shown = typeof value === "object" && value !== null ? "this object" : String(value)
  throw new PaceError("SLUICE_INVALID_OPTION", `${path}: ${shown} is not valid. Use ${accepted}.`)
}
