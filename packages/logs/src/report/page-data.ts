import type { PeakHistogram, Timeline } from "../replay/result.ts"

/** The data that the script of the page draws. The page contains the data as JSON. */
export interface PageData {
  readonly timeline: Omit<Timeline, "refusedBy">
  /** The rules in the order of the page. Elements of the page refer to a rule by its index. */
  readonly rules: readonly {
    readonly name: string
    readonly refused: readonly number[]
    readonly peaks: PeakHistogram
  }[]
}

/** Id of the element that contains the data. */
export const DATA_ID = "replay-data"
