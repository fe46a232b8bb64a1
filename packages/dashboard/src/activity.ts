import type { Clock, Limiter } from "@sluice/core"
import {
  clockOption,
  mustBe,
  type OptionCheck,
  problemAt,
  requireOptions,
  steadyClock,
} from "@sluice/core/kit"
import { atOnce, inSlices, type Pausable } from "@sluice/core/rules"
import type { ActivityOverview, ActivitySums } from "./overview/overview.ts"
import { boundedOverview, groupBy } from "./overview/overview-of.ts"
import { byRefusals, mergeSums, sumsIn } from "./overview/sums-of.ts"
import { ActivityRecorder } from "./recorder/recorder.ts"
import { RecorderTime } from "./recorder/recorder-time.ts"
import type { ActivitySnapshot } from "./recorder/snapshot.ts"
import type { ActivityBoard } from "./shared/activity-board.ts"
import { type Others, Sharing } from "./shared/sharing.ts"
import { textOfSnapshots } from "./shared/snapshot-text.ts"

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
  /** Also records another limiter. Returns a function that stops this, and deletes the limiter's records. */
  record(limiter: Limiter<never>): () => void
  /**
   * Returns what all limiters have decided, or only those of a service, merged by service. Above 250 rules, the services that
   * refuse least are left out, and `missing` says so.
   */
  overview(service?: string): ActivityOverview
  /**
   * Resolves with what the limiters of all processes have decided that use the same `shared`. Without `shared`, these are
   * the limiters of this process. The first call takes 1.5 s, until the other processes have written. They write every
   * 2 s, until ten seconds after the last call. Never rejects: if the others cannot be read, `missing` contains the reason.
   */
  overviewOfAll(service?: string): Promise<ActivityOverview>
  /** Resolves with the sums over all rules of each service, as `overviewOfAll` would. Takes much less time. */
  sumsOfAll(): Promise<ActivitySums>
  /** Returns what each limiter has decided, to be merged with the snapshots of other processes by `mergeActivity`. */
  snapshots(): readonly ActivitySnapshot[]
  /** Stops recording. What has been recorded can still be read. */
  stop(): void
}

/** Checks the option `shared`. */
export const boardOption: OptionCheck = mustBe(
  "a board",
  "redisActivity({ client }) of @sluice/redis",
  (value) => typeof (value as Partial<ActivityBoard> | null)?.exchange === "function",
)
const NO_OTHERS: Others = { snapshots: [], missing: undefined }
const LIMITERS = "limiters that createLimiter() returned, or the `limiter` of a middleware"
const checkLimiters = mustBe("a limiter or a list of limiters", LIMITERS, (value) =>
  (Array.isArray(value) ? value : [value]).every(isLimiter),
)

/**
 * Records what limiters decide from now on: for each rule the outcomes of the last five minutes and of the last day, the
 * clients that it refuses most, how many clients it refuses, and the last 200 refusals. A decision costs about 0.1 µs
 * more, and a refusal up to 1 µs. The records of all limiters of this process take at most 64 MB. Above that, the limiters
 * that have decided nothing for the longest time lose theirs. The records contain addresses and names of clients, so show
 * them only to those who may see them.
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
  const recorders = new Map<Limiter<never>, ActivityRecorder<never>>()
  const record = (limiter: Limiter<never>): (() => void) => {
    const recorder = recorders.get(limiter) ?? new ActivityRecorder(limiter, time)
    recorders.set(limiter, recorder)
    return () => {
      recorder.stop()
      recorders.delete(limiter)
    }
  }
  for (const limiter of [limiters].flat()) record(limiter)
  const sharing =
    shared === undefined
      ? undefined
      : new Sharing(shared, () => textOfSnapshots(mostRefusing(recorders.values())))
  const others = async (): Promise<Others> => (await sharing?.others()) ?? NO_OTHERS
  const sumsWith = ({ snapshots, missing }: Others): ActivitySums => {
    const nowMs = time.now()
    const own = Array.from(recorders.values(), (recorder) => recorder.sums())
    const services = mergeSums([...own, ...snapshots.map((snapshot) => sumsIn(snapshot, nowMs))])
    return { atMs: nowMs, services, ...(missing !== undefined && { missing }) }
  }
  const overviewWith = (ofOthers: Others, only?: string): Pausable<ActivityOverview> => {
    const names = only === undefined ? sumsWith(ofOthers).services.map(({ service }) => service) : [only]
    const own = groupBy(recorders.values(), ({ service }) => service)
    const theirs = groupBy(ofOthers.snapshots, ({ service }) => service)
    const snapshotsOf = (service: string, refusals: number): readonly ActivitySnapshot[] => [
      ...(own.get(service) ?? []).map((recorder) => recorder.snapshot(refusals)),
      ...(theirs.get(service) ?? []),
    ]
    return boundedOverview(names, snapshotsOf, time.now(), ofOthers.missing)
  }
  return {
    record,
    snapshots: () => Array.from(recorders.values(), (recorder) => recorder.snapshot()),
    overview: (service) => atOnce(overviewWith(NO_OTHERS, service)),
    overviewOfAll: async (service) => inSlices(overviewWith(await others(), service)),
    sumsOfAll: async () => sumsWith(await others()),
    stop() {
      sharing?.stop()
      for (const recorder of recorders.values()) recorder.stop()
    },
  }
}

/** Returns the snapshots by falling number of recent refusals. Each is taken when it is read. */
function* mostRefusing(recorders: Iterable<ActivityRecorder<never>>): Iterable<ActivitySnapshot> {
  const ranked = Array.from(recorders, (recorder) => ({ recorder, sums: recorder.sums() }))
  for (const { recorder } of ranked.sort((one, other) => byRefusals(one.sums, other.sums)))
    yield recorder.snapshot()
}

function isLimiter(value: unknown): boolean {
  const { on, decide } = (value ?? {}) as Partial<Limiter>
  return typeof on === "function" && typeof decide === "function"
}
