import type { PeakHistogram } from "../replay/result.ts"
import { ratio } from "./format.ts"

/** A bar of the histogram of peaks. Edges are multiples of the limit. */
export interface PeakBin {
  readonly above: number
  /** Undefined for the last bar. */
  readonly upTo: number | undefined
  readonly clients: number
  /** True if all clients of the bar exceed the limit. */
  readonly isOver: boolean
}

/** Returns the bars of a histogram. */
export function peakBins({ edges, counts }: PeakHistogram): PeakBin[] {
  return counts.map((clients, i) => {
    const above = edges[i - 1] ?? 0
    return { above, upTo: edges[i], clients, isOver: above >= 1 }
  })
}

/** Returns the label of a bar, such as "0.5× to 1×". */
export function binLabel({ above, upTo }: PeakBin): string {
  if (upTo === undefined) return `above ${ratio(above)}`
  return above === 0 ? `up to ${ratio(upTo)}` : `${ratio(above)} to ${ratio(upTo)}`
}

/**
 * Returns the position of the limit if each bar is one unit wide. For example, 3 is between the third and the fourth
 * bar.
 */
export function limitPosition(bins: readonly PeakBin[]): number {
  const at = bins.findIndex(({ upTo }) => upTo === undefined || upTo >= 1)
  const bin = bins[at]
  if (bin === undefined) return bins.length
  if (bin.upTo === undefined) return at + 0.5
  return at + (1 - bin.above) / (bin.upTo - bin.above)
}
