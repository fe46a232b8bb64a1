import type { Clock, Limiter } from "@sluice/core"
import {
  clockOption,
  mustBe,
  type OptionCheck,
  problemAt,
  requireOptions,
  steadyClock,
} from "@sluice/core/kit"
import type { ActivityOverview } from "./overview/overview.ts"
import { overviewOf } from "./overview/overview-of.ts"
import { ActivityRecorder } from "./recorder/recorder.ts"
import { RecorderTime } from "./recorder/recorder-time.ts"
import type { ActivitySnapshot, ActivitySums } from "./recorder/snapshot.ts"
import type { ActivityBoard } from "./shared/activity-board.ts"
import { Sharing } from "./shared/sharing.ts"

/** Options of `recordActivity`. */
export interface ActivityOptions {
  /**
   * The board on which this process exchanges its records with others: `redisActivity({ client })` of `@sluice/redis`.
   * The process writes only while somebody reads `overviewOfAll()`. Default: none.
   */
  readonly shared?: ActivityBoard | undefined
  /** The source of time, for tests. Default: a clock that ignores changes of the system time. */
  readonly clock?: Clock | undefined
}

/** What limiters of this process have decided lately. */
export interface Activity {
  /** Returns what all limiters have decided, merged by service. */
  overview(): ActivityOverview
  /**
   * Resolves with what the limiters of all processes have decided that use the same `shared`. Without `shared`, these are
   * the limiters of this process. The other processes notice the first call within 3 s, and then write every 2 s. Never
   * rejects: if the others cannot be read, `missing` contains the reason.
   */
  overviewOfAll(): Promise<ActivityOverview>
  /** Returns what each limiter has decided, to be merged with the snapshots of other processes by `mergeActivity`. */
  snapshots(): readonly ActivitySnapshot[]
  /** Returns the sums over all rules of each limiter. Takes much less time than `snapshots`. */
  sums(): readonly ActivitySums[]
  /** Stops recording. What has been recorded can still be read. */
  stop(): void
}

/** Checks the option `shared`. */
export const boardOption: OptionCheck = mustBe(
  "a board",
  "redisActivity({ client }) of @sluice/redis",
  (value) => typeof (value as Partial<ActivityBoard> | null)?.exchange === "function",
)
const LIMITERS = "limiters that createLimiter() returned, or the `limiter` of a middleware"
const checkLimiters = mustBe("a limiter or a list of limiters", LIMITERS, (value) =>
  (Array.isArray(value) ? value : [value]).every(isLimiter),
)

/**
 * Records what limiters decide from now on: for each rule the outcomes of the last five minutes and of the last day, the
 * clients that it refuses most, how many clients it refuses, and the last 200 refusals. The memory is bounded. A decision
 * costs about 0.05 µs more, and a refusal up to 0.6 µs. The records contain addresses and names of clients, so show them
 * only to those who may see them.
 *
 * @example
 * ```ts
 * import { createLimiter } from "@sluice/core"
 * import { recordActivity } from "@sluice/dashboard"
 *
 * const limiter = createLimiter({ name: "per-client", limit: 100, window: "1 minute" })
 * const activity = recordActivity(limiter)
 * const [service] = activity.overview().services
 * console.table(service?.rules[0]?.refused) // who is refused by the rule, how often, and until when
 * ```
 * @throws {@link InvalidOptionError}
 */
export function recordActivity(
  limiters: Limiter<never> | readonly Limiter<never>[],
  options: ActivityOptions = {},
): Activity {
  const problems = problemAt("limiters", limiters, checkLimiters)
  requireOptions("recordActivity()", options, { shared: boardOption, clock: clockOption }, problems)
  const { clock, shared } = options
  const time = clock === undefined ? new RecorderTime(steadyClock) : new RecorderTime(clock, 0)
  const recorders = [...new Set([limiters].flat())].map((limiter) => new ActivityRecorder(limiter, time))
  const snapshots = (): readonly ActivitySnapshot[] => recorders.map((recorder) => recorder.snapshot())
  const sharing = shared === undefined ? undefined : new Sharing(shared, snapshots)
  return {
    snapshots,
    sums: () => recorders.map((recorder) => recorder.sums()),
    overview: () => overviewOf(snapshots(), time.now()),
    async overviewOfAll() {
      const { snapshots: others = [], missing } = (await sharing?.others()) ?? {}
      const overview = overviewOf([...snapshots(), ...others], time.now())
      return missing === undefined ? overview : { ...overview, missing }
    },
    stop() {
      sharing?.stop()
      for (const recorder of recorders) recorder.stop()
    },
  }
}

function isLimiter(value: unknown): boolean {
  const { on, decide } = (value ?? {}) as Partial<Limiter>
  return typeof on === "function" && typeof decide === "function"
}
