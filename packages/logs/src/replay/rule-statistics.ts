import type { Refusal } from "@sluice/core"
import type { ParsedRule } from "@sluice/rules"
import type { PeakHistogram, RuleResult } from "./result.ts"
import { type RequestedUnits, RuleClients } from "./rule-clients.ts"

/**
 * The multiples of the limit up to which a client is slightly over the limit, and above which it is far over the
 * limit.
 */
export interface Thresholds {
  readonly slightly: number
  readonly far: number
}

/** Reasons for refusals that depend on the demand of clients. A client on a deny list is refused under any limit. */
const BY_DEMAND: ReadonlySet<Refusal | undefined> = new Set(["quota", "penalty"])

const PEAK_EDGES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100] as const

/** Counts the decisions of one rule in a replay. */
export class RuleStatistics {
  readonly rule: ParsedRule
  readonly clients: RuleClients
  /** Number of refused requests by reason. */
  readonly reasons: Map<Refusal, number> = new Map()
  readonly #thresholds: Thresholds
  /** The demand of all clients together, for a rule without a field. */
  readonly #whole: RuleClients | undefined
  #seen = 0
  #refused = 0
  #isShared = false

  constructor(rule: ParsedRule, thresholds: Thresholds) {
    this.rule = rule
    this.clients = new RuleClients(rule.windowMs, isBucket(rule))
    this.#whole = rule.fields.length === 0 ? new RuleClients(rule.windowMs, isBucket(rule)) : undefined
    this.#thresholds = thresholds
  }

  /**
   * Counts a request of a client. `refusal` is the reason why the rule refused the request, or undefined. `isShared`
   * is true if other clients use the same counter.
   */
  add(
    client: number,
    atMs: number,
    demand: RequestedUnits,
    refusal: Refusal | undefined,
    isShared: boolean,
  ): void {
    this.#seen++
    if (isShared) this.#isShared = true
    this.clients.add(client, atMs, demand)
    this.#whole?.add(0, atMs, demand)
    if (refusal === undefined) return
    this.#refused++
    this.reasons.set(refusal, (this.reasons.get(refusal) ?? 0) + 1)
    this.clients.refuse(client, atMs, BY_DEMAND.has(refusal))
  }

  get refused(): number {
    return this.#refused
  }

  /** Number of clients that the rule refused at least once. */
  get refusedClients(): number {
    let refused = 0
    this.clients.visitAll((_peak, isRefused) => {
      if (isRefused) refused++
    })
    return refused
  }

  /**
   * `missing` contains the fields that the log lacks, `window` is the window as written, and `logMs` is the length of
   * the log.
   */
  result(missing: readonly string[], window: string, logMs: number): Omit<RuleResult, "spread"> {
    const { name, algorithm, limit, windowMs, shadow } = this.rule
    const { slightly, far } = this.#thresholds
    const counts = Array<number>(PEAK_EDGES.length + 1).fill(0)
    const classes = [0, 0, 0]
    let refused = 0
    let bystanders = 0
    this.clients.visitAll((peak, isRefused, isOver) => {
      const edge = PEAK_EDGES.findIndex((each) => peak <= each)
      const bin = edge === -1 ? PEAK_EDGES.length : edge
      counts[bin] = (counts[bin] as number) + 1
      if (isRefused) refused++
      if (!isOver) return
      if (this.#isShared && peak <= 1) bystanders++
      else {
        const at = peak <= slightly ? 0 : peak <= far ? 1 : 2
        classes[at] = (classes[at] as number) + 1
      }
    })
    const [few = 0, some = 0, many = 0] = classes
    const peaks: PeakHistogram = { edges: PEAK_EDGES, counts }
    let peak: number | undefined
    this.#whole?.visitAll((highest) => {
      peak = highest
    })
    return {
      ...{ name, algorithm, limit: limit as number, windowMs, window, shadow },
      judged: missing.length === 0,
      missing,
      seen: this.#seen,
      refused: this.#refused,
      reasons: Object.fromEntries(this.reasons),
      clients: { seen: this.clients.seen, refused, bystanders },
      ratios: [
        { upTo: slightly, clients: few },
        { upTo: far, clients: some },
        { upTo: null, clients: many },
      ],
      peaks,
      ...(peak !== undefined && { peak }),
      tooShort: windowMs > logMs / 3,
    }
  }
}

function isBucket({ algorithm }: ParsedRule): boolean {
  return algorithm === "token-bucket" || algorithm === "leaky-bucket"
}
