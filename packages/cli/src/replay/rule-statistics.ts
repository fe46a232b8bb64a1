import type { PeakHistogram, RuleResult } from "./result.ts"
import { type ClientOfRule, RuleClients } from "./rule-clients.ts"

/** A rule that is replayed. */
export interface ReplayedRule {
  readonly name: string
  readonly algorithm: string
  readonly limit: number
  readonly windowMs: number
  readonly window: string
  readonly shadow: boolean
  /** True if all clients share one counter. */
  readonly countsService: boolean
}

/** Up to which multiple of the limit a client is slightly over it, and above which it is far over it. */
export interface Thresholds {
  readonly slightly: number
  readonly far: number
}

const PEAK_EDGES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100] as const

/** Counts what one rule did in a replay. */
export class RuleStatistics {
  readonly rule: ReplayedRule
  readonly clients: RuleClients
  readonly #thresholds: Thresholds
  #seen = 0
  #refused = 0
  #isShared = false

  constructor(rule: ReplayedRule, thresholds: Thresholds) {
    this.rule = rule
    this.clients = new RuleClients(rule.windowMs)
    this.#thresholds = thresholds
  }

  /** Counts a request of a client. `isShared` is true if other clients use the same counter. */
  add(
    client: number,
    atMs: number,
    units: number,
    limit: number,
    isRefused: boolean,
    isShared: boolean,
  ): void {
    this.#seen++
    if (isShared) this.#isShared = true
    this.clients.add(client, atMs, units, limit)
    if (!isRefused) return
    this.#refused++
    this.clients.refuse(client, atMs)
  }

  get refused(): number {
    return this.#refused
  }

  /** `missing` are the fields that the log lacks, `logMs` is the length of the log. */
  result(missing: readonly string[], logMs: number): Omit<RuleResult, "spread"> {
    const { name, algorithm, limit, windowMs, window, shadow } = this.rule
    const refused = this.clients.refused
    const { slightly, far } = this.#thresholds
    const between = (above: number, upTo: number): number =>
      refused.filter(({ peak }) => peak > above && peak <= upTo).length
    const peaks = histogramOf(this.clients)
    return {
      ...{ name, algorithm, limit, windowMs, window, shadow },
      judged: missing.length === 0,
      missing,
      seen: this.#seen,
      refused: this.#refused,
      clients: {
        seen: peaks.counts.reduce((sum, each) => sum + each, 0),
        refused: refused.length,
        bystanders: this.#isShared ? refused.filter(isBystander).length : 0,
      },
      ratios: [
        { upTo: slightly, clients: between(Number.NEGATIVE_INFINITY, slightly) },
        { upTo: far, clients: between(slightly, far) },
        { upTo: null, clients: between(far, Number.POSITIVE_INFINITY) },
      ],
      peaks,
      tooShort: windowMs > logMs / 3,
    }
  }
}

/** True for a client that would not have been refused alone. */
function isBystander({ peak }: ClientOfRule): boolean {
  return peak <= 1
}

function histogramOf(clients: RuleClients): PeakHistogram {
  const counts = Array<number>(PEAK_EDGES.length + 1).fill(0)
  clients.forEachPeak((peak) => {
    const found = PEAK_EDGES.findIndex((edge) => peak <= edge)
    const at = found === -1 ? PEAK_EDGES.length : found
    counts[at] = (counts[at] as number) + 1
  })
  return { edges: PEAK_EDGES, counts }
}
