const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 })

/** Returns a count with separators, such as "2,000,000". */
export function count(value: number): string {
  return COUNT.format(value)
}

/** Returns a count with its noun, such as "1 client" or "23 clients". */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`
}

/** Returns a share as a percentage, such as "15.4%" or "0.02%". Returns "–" if the whole is 0. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return "–"
  if (part === 0 || part === whole) return part === 0 ? "0%" : "100%"
  const value = (100 * part) / whole
  // Rounding must not hide the last request, so 99.96% does not become 100%.
  if (value < 0.01) return "<0.01%"
  if (value > 99.99) return ">99.99%"
  return `${value.toFixed(value < 1 || value > 99.9 ? 2 : 1)}%`
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
