import type { Rule } from "@sluice/core"
import type { ClientAddressOptions } from "@sluice/core/adapters"
import type { Replay } from "@sluice/core/replay"
import type { LogRecord } from "../reading/log.ts"
import { createLogReplay } from "../replay/replay-run.ts"
import { ClientReader } from "./client-reader.ts"
import type { GroupDemand } from "./group-demand.ts"
import { samplingError } from "./peak-curve.ts"
import { type ClientReading, fieldOf } from "./request-groups.ts"
import type { SampledClients } from "./sampled-clients.ts"
import { type Capacity, type WindowLength, windowMembers } from "./window-length.ts"
import type { WindowAlgorithm } from "./window-peaks.ts"

/** A limit whose refused requests must be counted. */
export interface TriedLimit {
  readonly group: GroupDemand
  /** Index of the window. */
  readonly window: number
  readonly limit: number
}

/** Refused requests. */
export interface RefusedRequests {
  readonly requests: number
  /** Half-width of the 95% confidence interval. 0 if the number is exact. */
  readonly error: number
  /** The number of refusals, without refusals of the largest clients. */
  readonly ofOthers: number
}

export interface RefusalSplitOptions extends ClientReading {
  readonly windows: readonly WindowLength[]
  readonly algorithm: WindowAlgorithm
  readonly capacity?: Capacity | undefined
  readonly clients: SampledClients
  /** The largest clients. */
  readonly largest: ReadonlySet<number>
}

interface Trial extends TriedLimit {
  readonly replay: Replay
  exact: number
  ofOthers: number
  /** Refused requests of each sampled client that represents several clients. */
  readonly sampled: Map<number, number>
}

/**
 * The second pass over the logs. It replays some limits separately, and counts the requests that each limit would
 * have refused. To each limit, it offers only requests of clients whose peak is above the limit, because the limit
 * refuses no others.
 */
export class Refusals {
  readonly #options: RefusalSplitOptions
  readonly #reader: ClientReader
  readonly #trials: readonly Trial[]
  readonly #service: Replay | undefined
  #serviceRefused = 0

  constructor(limits: readonly TriedLimit[], options: RefusalSplitOptions) {
    const { by, address, windows, algorithm, capacity } = options
    this.#options = options
    this.#reader = new ClientReader(options)
    this.#trials = distinct(limits).map((tried): Trial => {
      const { match } = tried.group.group
      const rule = {
        field: fieldOf(by),
        limit: tried.limit,
        ...windowMembers(windows[tried.window] as WindowLength, algorithm),
        ...(match && { match }),
      } as Rule
      return {
        ...tried,
        replay: createLogReplay({ ...address, rules: [rule] }),
        exact: 0,
        ofOthers: 0,
        sampled: new Map(),
      }
    })
    this.#service = capacity && serviceReplay(capacity, algorithm, address)
  }

  /** Replays a request. Times must not decrease. */
  offer(record: LogRecord): void {
    if (this.#service?.offer(record).allowed === false) this.#serviceRefused++
    const { clients, largest } = this.#options
    const client = this.#reader.find(record, clients)
    if (client === undefined) return
    for (let i = 0; i < this.#trials.length; i++) {
      const trial = this.#trials[i] as Trial
      if (trial.group.peakOf(client, trial.window) <= trial.limit || trial.replay.offer(record).allowed)
        continue
      const weight = clients.weightOf(client)
      if (weight === 1) trial.exact++
      else if (weight > 1) trial.sampled.set(client, (trial.sampled.get(client) ?? 0) + 1)
      if (!largest.has(client)) trial.ofOthers += weight
    }
  }

  /** Returns the refusals of a limit. */
  of(group: GroupDemand, window: number, limit: number): RefusedRequests | undefined {
    const trial = this.#trials.find((each) => isSame(each, { group, window, limit }))
    if (trial === undefined) return undefined
    const { factor } = this.#options.clients
    let sampled = 0
    let squares = 0
    for (const refused of trial.sampled.values()) {
      sampled += refused
      squares += refused * refused
    }
    return {
      requests: trial.exact + factor * sampled,
      error: samplingError(squares, factor),
      ofOthers: trial.ofOthers,
    }
  }

  /** Requests that the limit of the whole service would have refused. */
  get serviceRefused(): number {
    return this.#serviceRefused
  }
}

function serviceReplay(
  { limit, window }: Capacity,
  algorithm: string,
  address: ClientAddressOptions,
): Replay {
  const rule = { field: "service", limit, window: window.ms, algorithm: algorithm as WindowAlgorithm }
  return createLogReplay({ ...address, rules: [rule] })
}

function distinct(limits: readonly TriedLimit[]): readonly TriedLimit[] {
  return limits.filter((tried, at) => limits.findIndex((each) => isSame(each, tried)) === at)
}

function isSame(one: TriedLimit, other: TriedLimit): boolean {
  return one.group === other.group && one.window === other.window && one.limit === other.limit
}
