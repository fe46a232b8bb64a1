import { h, type PageContent } from "./element.ts"

const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 })
const RATE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 })

/** Returns a count with separators, such as "2,000,000". */
export function count(value: number): string {
  return COUNT.format(value)
}

/** Returns a number of requests per second, such as "0.3" or "1,250". */
export function rate(value: number): string {
  return (value < 10 ? RATE : COUNT).format(value)
}

/** Returns a share such as "15%", or nothing if there is none. */
export function share(part: number, whole: number): string {
  if (part === 0) return ""
  const percent = (100 * part) / whole
  return percent < 1 ? "<1%" : `${Math.floor(percent)}%`
}

/** Returns a time of day, such as "14:05:09". */
export function clock(atMs: number): string {
  return new Date(atMs).toISOString().slice(11, 19)
}

/** Returns a date in UTC, such as "2026-11-30". */
export function date(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10)
}

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const

/** Returns a duration in its two largest units, such as "2 h 47 min". Rounds up, so that nobody retries too early. */
export function duration(ms: number): string {
  let rest = Math.max(0, Math.ceil(ms / 1_000))
  const first = UNITS.findIndex(([, length]) => rest >= length)
  if (first === -1) return "0 s"
  const parts = UNITS.slice(first, first + 2).map(([unit, length]) => {
    const amount = Math.floor(rest / length)
    rest -= amount * length
    return amount === 0 ? "" : `${amount} ${unit}`
  })
  return parts.filter((part) => part !== "").join(" ")
}

/** Characters that are invisible or that change the direction of the text around them. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const SHOWN_LENGTH = 120

/** Returns text whose invisible characters are escapes such as `\u{202e}`, because clients choose keys. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (char) => `\\u{${(char.codePointAt(0) as number).toString(16)}}`)
}

/** Returns a name or key for display. A long name loses its middle. */
export function name(text: string): string {
  const shown = visible(text)
  return shown.length <= SHOWN_LENGTH ? shown : `${shown.slice(0, 90)} … ${shown.slice(-20)}`
}

/** Returns the name of a rule or service as an element whose direction does not affect the text around it. */
export function named(text: string): PageContent {
  return h("bdi", {}, name(text))
}
