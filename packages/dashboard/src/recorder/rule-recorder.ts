import type { PolicyCheck, Refusal } from "@sluice/core"
import { BySlot, type Grow } from "./by-slot.ts"
import { DistinctKeys, OWN_SEED, SHARED_SEED } from "./distinct.ts"
import {
  ADMITTED,
  DEGRADED,
  OutcomeCounter,
  OVER_LIMIT,
  REFUSED,
  type RecorderSums,
  SHADOWED,
} from "./outcome-counter.ts"
import { laterRefusal, limitedClient, MOST_REFUSED, RefusedClients } from "./refused-clients.ts"
import { OTHERS, type RuleActivity } from "./snapshot.ts"
import { mergeTop, SpaceSaving } from "./top-keys.ts"

/** What a rule takes that only admits requests: two rings of counts, and objects. */
const RULE_BYTES = 4_300
/** Most clients that are listed because of their number of requests. */
export const MOST_BUSY = 32
/** One of so many requests is counted for its client, on average. */
export const SAMPLED = 16

/** Records what one rule decides. */
export class RuleRecorder {
  readonly rule: string
  readonly #outcomes = new OutcomeCounter()
  readonly #refused: BySlot<RefusedClients>
  readonly #busy: BySlot<SpaceSaving>
  #isShadow = false
  /** The memory of all records. */
  bytes = 0

  constructor(rule: string, growing: Grow) {
    const grow: Grow = (bytes) => {
      this.bytes += bytes
      growing(bytes)
    }
    this.rule = rule
    this.#refused = new BySlot(() => new RefusedClients(grow), grow)
    this.#busy = new BySlot(() => new SpaceSaving(MOST_BUSY, grow), grow)
    grow(RULE_BYTES)
  }

  /** Counts a decision of the rule in a second since the epoch. */
  count({ allowed, shadow, overLimit }: PolicyCheck, isDegraded: boolean, second: number): void {
    this.#isShadow = shadow
    const outcome = allowed ? (overLimit ? OVER_LIMIT : ADMITTED) : shadow ? SHADOWED : REFUSED
    this.#outcomes.add(outcome, second)
    if (isDegraded) this.#outcomes.add(DEGRADED, second)
  }

  /** Lists the client of a request that is in the sample. */
  sample(partition: string, nowMs: number): void {
    this.#busy.at(nowMs).add(partition)
  }

  /** Lists a client that the rule refuses or, in shadow mode, would have refused. */
  refuse({ refusal, retryAfterMs }: PolicyCheck, partition: string, nowMs: number): void {
    this.#refused.at(nowMs).add(partition, refusal as Refusal, nowMs, retryAfterMs)
  }

  /** Adds the outcomes of the last 300 seconds and of the last day to `sums`. */
  addTo(sums: RecorderSums, nowMs: number): void {
    this.#outcomes.addTo(sums, Math.floor(nowMs / 1_000))
  }

  /** True if the rule has decided nothing for a day. */
  isIdle(nowMs: number): boolean {
    return Object.keys(this.#outcomes.read(Math.floor(nowMs / 1_000)).slots).length === 0
  }

  read(nowMs: number): RuleActivity {
    const slots = this.#refused.read(nowMs).map((clients) => clients.read())
    const top = mergeTop(
      slots.map((slot) => slot.top),
      MOST_REFUSED,
      laterRefusal,
    )
    const requests = this.#busy.read(nowMs).map((keys) => keys.read())
    const busiest = mergeTop(requests, MOST_BUSY, (one) => one)
    const distinct = [new DistinctKeys(OWN_SEED), new DistinctKeys(SHARED_SEED)] as const
    for (const slot of slots) for (const i of [0, 1] as const) distinct[i].merge(slot.distinct[i])
    return {
      rule: this.rule,
      shadow: this.#isShadow && this.rule !== OTHERS,
      ...this.#outcomes.read(Math.floor(nowMs / 1_000)),
      refused: top.keys.map(limitedClient),
      unlistedRefusals: top.unlisted,
      busy: busiest.keys
        .map(({ key, count, error }) => ({ key, requests: (count - error) * SAMPLED }))
        .sort((one, other) => other.requests - one.requests),
      ...(slots.length > 0 && {
        refusedClients: top.unlisted === 0 ? top.keys.length : distinct[0].size,
        registers: distinct[1].toString(),
      }),
    }
  }
}
