/** Returns the middle of the sorted values, or the mean of the two middle values. NaN without values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.floor(middle - 0.5)] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2
}

/** Returns the percentile (`part` from 0 to 1), interpolated between the neighboring values. NaN without values. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (sorted.length - 1) * part
  const below = sorted[Math.floor(place)] ?? Number.NaN
  const above = sorted[Math.ceil(place)] ?? Number.NaN
  return below + (above - below) * (place - Math.floor(place))
}

export interface Spread {
  readonly median: number
  readonly least: number
  readonly most: number
  readonly samples: number
}

export function spreadOf(values: readonly number[]): Spread {
  return {
    median: median(values),
    least: Math.min(...values),
    most: Math.max(...values),
    samples: values.length,
  }
}

/** Returns the ratios of figures from the same round, because a slow machine affects both of them. */
export function pairedRatios(values: readonly number[], to: readonly number[]): number[] {
  return values.map((value, round) => value / (to[round] ?? Number.NaN))
}

/** Returns the list, rotated by one more member in each round, so that no contender is always first. */
export function rotated<T>(list: readonly T[], round: number): T[] {
  const start = list.length === 0 ? 0 : round % list.length
  return [...list.slice(start), ...list.slice(0, start)]
}
