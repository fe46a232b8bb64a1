import type { LogSummary } from "../reading/log.ts"
import {
  activeOf,
  type Candidate,
  type CandidateOptions,
  candidatesOf,
  farClients,
  refusableClients,
} from "./candidates.ts"
import type { ClientDemand } from "./demand.ts"
import type { GroupDemand } from "./group-demand.ts"
import { LARGE_SHARE, notesOn } from "./notes.ts"
import type { ClientEstimate, PeakCurve } from "./peak-curve.ts"
import type { Refusals, TriedLimit } from "./refusals.ts"
import type {
  EstimatedNumber,
  SuggestCandidate,
  SuggestGroup,
  SuggestResult,
  SuggestWindow,
} from "./result.ts"
import type { Capacity, WindowLength } from "./window-length.ts"
import type { WindowAlgorithm } from "./window-peaks.ts"

export interface SuggestionOptions {
  readonly by: readonly string[]
  readonly windows: readonly WindowLength[]
  readonly algorithm: WindowAlgorithm
  readonly refuseAtMost: number
  readonly capacity?: Capacity | undefined
  /** Returns the displayed name of a client. Default: the name itself. */
  readonly shownName?: (name: string) => string
}

/** The limits of one window and group, before the second pass. */
interface WindowLimits {
  readonly curve: PeakCurve
  readonly candidates: readonly Candidate[]
  readonly withoutLargest:
    | { readonly curve: PeakCurve; readonly candidates: readonly Candidate[] }
    | undefined
}

const LARGEST = 10
/** The minimum number of clients. With fewer clients, a few clients always make most of the requests. */
const FEWEST_CLIENTS = 100

/** The maximum limit of each algorithm that has a maximum. For example, `sliding-log` stores every unit. */
const MOST_UNITS: Readonly<Partial<Record<WindowAlgorithm, number>>> = { "sliding-log": 1_000 }

/** The limits that the first pass has found. The second pass adds the refused requests. */
export class Suggestion {
  /** The numbers of the few clients that make most of the requests. Empty if there are no such clients. */
  readonly largest: ReadonlySet<number>
  readonly #demand: ClientDemand
  readonly #options: SuggestionOptions
  readonly #limits: ReadonlyMap<GroupDemand, readonly WindowLimits[]>
  readonly #list: SuggestResult["largest"]

  /** `demand` must have counted all requests. */
  constructor(demand: ClientDemand, options: SuggestionOptions) {
    const { clients } = demand
    const { shownName = (name: string) => name } = options
    this.#demand = demand
    this.#options = options
    const list = clients.largest(LARGEST)
    const all = (demand.groups[0] as GroupDemand).requests
    const outliers = list.slice(0, mostOf(list, all, clients.end))
    this.largest = new Set(outliers.map(({ client }) => client))
    this.#list = {
      clients: outliers.map(({ client, count, error }) => ({
        client: shownName(clients.nameOf(client)),
        requests: count - error,
        error,
      })),
      share: share(
        outliers.reduce((sum, { count, error }) => sum + count - error, 0),
        all,
      ),
    }
    this.#limits = new Map(
      demand.groups.map((group) => [
        group,
        options.windows.map((_, window) => this.#limitsOf(group, window)),
      ]),
    )
  }

  /** Returns all limits whose refused requests the second pass must count. */
  get tried(): readonly TriedLimit[] {
    return [...this.#limits].flatMap(([group, windows]) =>
      windows.flatMap(({ candidates, withoutLargest }, window) =>
        [...candidates, ...(withoutLargest?.candidates ?? [])].map(({ limit }) => ({ group, window, limit })),
      ),
    )
  }

  /** Returns the result. Pass no `refusals` if the logs could not be read again. */
  resultOf(logs: LogSummary, refusals: Refusals | undefined): SuggestResult {
    const { by, algorithm, refuseAtMost, capacity } = this.#options
    const demand = this.#demand
    const [from, to] = [logs.fromMs as number, logs.toMs as number]
    const { lines, requests, unparsed, skipped, late, tooManyRequests, resolutionMs } = logs
    const groups = demand.groups.map((group) => this.#groupOf(group, refusals, to - from))
    const partial = {
      schema: 1 as const,
      log: {
        files: logs.files.map((file) => ({ ...file, format: file.format as string })),
        ...{ lines, requests, unparsed, skipped, late, tooManyRequests, from, to, resolutionMs },
      },
      ...{ by, algorithm, refuseAtMost, groups, largest: this.#list },
      clients: (groups[0] as SuggestGroup).clients,
      sampledOneOf: demand.clients.factor,
      ...(capacity && {
        capacity: { ...capacity, peak: demand.servicePeak, requests: refusals?.serviceRefused ?? null },
      }),
    }
    return { ...partial, notes: notesOn(partial, demand) }
  }

  /** In a smaller group, the number of requests from the largest clients is unknown. */
  #candidateOptions(group: GroupDemand): CandidateOptions {
    const { algorithm, refuseAtMost } = this.#options
    return {
      refuseAtMost,
      mostUnits: MOST_UNITS[algorithm] ?? Number.MAX_SAFE_INTEGER,
      outliers: group === this.#demand.groups[0] ? this.largest.size : 0,
    }
  }

  #limitsOf(group: GroupDemand, window: number): WindowLimits {
    const { clients } = this.#demand
    const curve = group.curve(window, clients)
    const options = this.#candidateOptions(group)
    const others = options.outliers > 0 ? group.curve(window, clients, this.largest) : undefined
    return {
      curve,
      candidates: candidatesOf(curve, options),
      withoutLargest: others && {
        curve: others,
        candidates: candidatesOf(others, { ...options, outliers: 0 }),
      },
    }
  }

  #groupOf(group: GroupDemand, refusals: Refusals | undefined, logMs: number): SuggestGroup {
    const { name, match, isLogin } = group.group
    const limits = this.#limits.get(group) as readonly WindowLimits[]
    return {
      name,
      ...(match && { match }),
      ...(isLogin === true && { failed: group.failed }),
      requests: group.requests,
      clients: numberOf((limits[0] as WindowLimits).curve.all),
      windows: limits.map((each, window) => this.#windowOf(group, window, each, refusals, logMs)),
    }
  }

  #windowOf(
    group: GroupDemand,
    window: number,
    { curve, candidates, withoutLargest }: WindowLimits,
    refusals: Refusals | undefined,
    logMs: number,
  ): SuggestWindow {
    const length = this.#options.windows[window] as WindowLength
    const rule = activeOf(candidates)
    const usualPeak = curve.leastLimit(refusableClients(curve, this.#candidateOptions(group)))
    const ofLargest = this.#list.clients.reduce((sum, { requests }) => sum + requests, 0)
    return {
      window: length,
      highestPeak: curve.highest,
      usualPeak,
      usualShare: 1 - share(curve.above(usualPeak).clients, curve.all.clients),
      far: farClients(curve),
      candidates: candidates.map((candidate) => {
        const refused = refusals?.of(group, window, candidate.limit)
        const requests = refused && { value: refused.requests, error: refused.error }
        return evidenceOf(candidate, curve, requests, group.requests, candidate === rule)
      }),
      ...(withoutLargest && {
        withoutLargest: withoutLargest.candidates.map((candidate) => {
          const refused = refusals?.of(group, window, candidate.limit)
          const requests = refused && { value: refused.ofOthers, error: refused.error }
          return evidenceOf(candidate, withoutLargest.curve, requests, group.requests - ofLargest, false)
        }),
      }),
      tooShort: length.ms > logMs / 3,
    }
  }
}

function evidenceOf(
  { name, limit, clients, clientsError, nextPeak }: Candidate,
  curve: PeakCurve,
  requests: EstimatedNumber | undefined,
  allRequests: number,
  isRule: boolean,
): SuggestCandidate {
  return {
    name,
    limit,
    clients: { value: clients, error: clientsError },
    clientShare: share(clients, curve.all.clients),
    requests: requests ?? null,
    requestShare: requests === undefined ? null : share(requests.value, allRequests),
    nextPeak: nextPeak ?? null,
    isRule,
  }
}

function numberOf({ clients, error }: ClientEstimate): EstimatedNumber {
  return { value: clients, error }
}

/**
 * Returns how many of the largest clients together make most of the requests. Returns 0 if all of them together do
 * not make most of the requests.
 */
function mostOf(
  list: readonly { readonly count: number; readonly error: number }[],
  all: number,
  clients: number,
): number {
  if (clients < FEWEST_CLIENTS) return 0
  let sum = 0
  const at = list.findIndex(({ count, error }) => {
    sum += count - error
    return sum > LARGE_SHARE * all
  })
  return at + 1
}

function share(part: number, all: number): number {
  return all <= 0 ? 0 : part / all
}
