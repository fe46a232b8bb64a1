/** What a response says about one quota. */
export interface Reading {
  /** The units that are left. A call is counted as one unit. */
  readonly remaining: number
  /** The milliseconds that they must last, from the response on. */
  readonly forMs: number
  /** The units of a full window, if the server says so. */
  readonly quota?: number | undefined
}

/**
 * Reads the fields of one dialect. Returns one reading for each quota, or none if the response does not have the fields
 * or they make no sense. `nowMs` is the server's time, epoch milliseconds.
 */
export type Dialect = (headers: Headers, nowMs: number) => readonly Reading[]

/** The longest time that a reading or a refusal can name. A server that names a longer one is mistaken or lies. */
export const LONGEST_MS = 86_400_000

/** Returns a reading in a list; an empty list if a number is missing or negative. */
export function readingsOf(remaining: number, forMs: number, quota = 0): readonly Reading[] {
  if (!(remaining >= 0 && forMs >= 0)) return []
  return [{ remaining, forMs: Math.min(forMs, LONGEST_MS), quota: quota > 0 ? quota : undefined }]
}

/** Returns a header as a number that is not negative; NaN if it is missing or anything else. */
export function numberIn(headers: Headers, name: string): number {
  return numberOf(headers.get(name) ?? "")
}

/** Returns a text as a number that is not negative; NaN for anything else. */
export function numberOf(text: string): number {
  return /^ *\d{1,15}(\.\d{1,9})? *$/.test(text) ? Number(text) : Number.NaN
}
