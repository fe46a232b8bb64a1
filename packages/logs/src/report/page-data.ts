import type { PeakHistogram, Timeline } from "../replay/result.ts"

/** What the script of the page draws. It is in the page as JSON. */
export interface PageData {
  readonly timeline: Omit<Timeline, "refusedBy">
  /** The rules in the order of the page. Elements refer to them by index. */
  readonly rules: readonly {
    readonly name: string
    readonly refused: readonly number[]
    readonly peaks: PeakHistogram
  }[]
}

/** Id of the element that contains the data. */
export const DATA_ID = "replay-data"
