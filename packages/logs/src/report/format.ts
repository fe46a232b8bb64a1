import { counted } from "../quantities.ts"

const ALIGNED_RATIO = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })
const RATIO = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 })

/** Returns a multiple of the limit with two decimals, so that the numbers of a column are aligned: "1.50×". */
export function alignedRatio(value: number): string {
  return `${ALIGNED_RATIO.format(value)}×`
}

/** Returns a multiple of the limit, such as "1.5×". */
export function ratio(value: number): string {
  return `${RATIO.format(value)}×`
}

/** Returns a time in UTC to the second, such as "2026-01-31 14:05:09". */
export function time(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace("T", " ")
}

/** Characters that are invisible or that change the direction of the text around them. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const SHOWN_LENGTH = 120
const SHOWN_AT_END = 20

/**
 * Returns text with its invisible characters as escapes such as `\u202e`. Clients choose strings, so two different
 * strings must not look equal.
 */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (char) => {
    const code = (char.codePointAt(0) as number).toString(16)
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`
  })
}

/**
 * Returns a name from a log for display. The result contains only visible characters, and a long name loses its
 * middle.
 */
export function shownName(name: string): string {
  const text = visible(name)
  if (text.length <= SHOWN_LENGTH) return text
  const begin = text.slice(0, SHOWN_LENGTH - SHOWN_AT_END).replace(/[\uD800-\uDBFF]$/, "")
  const end = text.slice(-SHOWN_AT_END).replace(/^[\uDC00-\uDFFF]/, "")
  return `${begin} … ${end} (${counted(name.length, "character")})`
}
