const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 })
const ALIGNED_RATIO = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })
const RATIO = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 })

/** Returns a count with separators, such as "2,000,000". */
export function count(value: number): string {
  return COUNT.format(value)
}

/** Returns a count with its noun, such as "1 client" or "23 clients". */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`
}

/** Returns a multiple of the limit with two digits after the point, so that a column of them is aligned: "1.50×". */
export function alignedRatio(value: number): string {
  return `${ALIGNED_RATIO.format(value)}×`
}

/** Returns a multiple of the limit, such as "1.5×". */
export function ratio(value: number): string {
  return `${RATIO.format(value)}×`
}

/** Returns a share as a percentage, such as "15.4%" or "0.02%". A share of nothing is "–". */
export function percent(part: number, whole: number): string {
  if (whole === 0) return "–"
  if (part === 0 || part === whole) return part === 0 ? "0%" : "100%"
  const value = (100 * part) / whole
  // Rounding must not hide the last request, so 99.96% does not become 100%.
  if (value < 0.01) return "<0.01%"
  if (value > 99.99) return ">99.99%"
  return `${value.toFixed(value < 1 || value > 99.9 ? 2 : 1)}%`
}

/** Returns a time in UTC to the second, such as "2026-01-31 14:05:09". */
export function time(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace("T", " ")
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
  ["ms", 1],
] as const

/** Returns a duration in its two largest units, such as "2 h 47 min". */
export function duration(ms: number): string {
  const first = UNITS.findIndex(([, length]) => ms >= length)
  if (first === -1) return "0 s"
  let rest = Math.round(ms)
  return UNITS.slice(first, first + 2)
    .flatMap(([unit, length]) => {
      const amount = Math.floor(rest / length)
      rest -= amount * length
      return amount === 0 ? [] : [`${amount} ${unit}`]
    })
    .join(" ")
}

/** Characters that are invisible or that change the direction of the text around them. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const SHOWN_LENGTH = 120
const SHOWN_AT_END = 20

/**
 * Returns text with its invisible characters as escapes such as `\u202e`. Clients choose texts, so two different texts
 * must not look equal.
 */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (char) => {
    const code = (char.codePointAt(0) as number).toString(16)
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`
  })
}

/** Returns a name from a log as it can be shown: with visible characters only, and without the middle if it is long. */
export function shownName(name: string): string {
  const text = visible(name)
  if (text.length <= SHOWN_LENGTH) return text
  const begin = text.slice(0, SHOWN_LENGTH - SHOWN_AT_END).replace(/[\uD800-\uDBFF]$/, "")
  const end = text.slice(-SHOWN_AT_END).replace(/^[\uDC00-\uDFFF]/, "")
  return `${begin} … ${end} (${counted(name.length, "character")})`
}
