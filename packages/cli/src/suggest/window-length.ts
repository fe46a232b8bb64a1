/** A window that limits are suggested for. */
export interface WindowLength {
  readonly ms: number
  /** As in a rule: "1 minute". */
  readonly text: string
  /** For names: "1m". */
  readonly short: string
  /** For sentences: "minute" in "60 per minute", "10 minutes" in "60 per 10 minutes". */
  readonly per: string
}

const UNITS = {
  s: { ms: 1_000, noun: "second" },
  m: { ms: 60_000, noun: "minute" },
  h: { ms: 3_600_000, noun: "hour" },
  d: { ms: 86_400_000, noun: "day" },
} as const

/** Counts times windows up to a week stay exact integers for clients with up to 15 million requests in a window. */
const LONGEST_MS = 7 * UNITS.d.ms

/** What `parseWindow` accepts, for messages. */
export const WINDOW_ACCEPTED = "a number and s, m, h or d, such as 10s, 1m or 1h, up to 7d"

/** Returns a window such as "1m"; undefined if the text is invalid or the window is longer than a week. */
export function parseWindow(text: string): WindowLength | undefined {
  const parts = /^([1-9]\d{0,5})?([smhd])$/.exec(text.trim())
  if (parts === null) return undefined
  const count = Number(parts[1] ?? 1)
  const unit = UNITS[parts[2] as keyof typeof UNITS]
  const ms = count * unit.ms
  if (ms > LONGEST_MS) return undefined
  const nouns = `${count} ${unit.noun}${count === 1 ? "" : "s"}`
  return { ms, text: nouns, short: `${count}${parts[2]}`, per: count === 1 ? unit.noun : nouns }
}

/** A limit for the whole service. */
export interface Capacity {
  readonly limit: number
  readonly window: WindowLength
}

/** Returns a capacity such as "500/s" or "20000/10m"; undefined if the text is invalid. */
export function parseCapacity(text: string): Capacity | undefined {
  const parts = /^([1-9]\d{0,11})\/(.+)$/.exec(text.trim())
  const window = parts === null ? undefined : parseWindow(parts[2] as string)
  return window && { limit: Number(parts?.[1]), window }
}
