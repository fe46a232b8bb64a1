import type { PolicyCheck, Refusal } from "@sluice/core"
import { BySlot } from "./by-slot.ts"
import { DistinctKeys } from "./distinct.ts"
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

/** Most clients that are listed because of their number of requests. */
export const MOST_BUSY = 32
/** One of so many requests is counted for its client, on average. */
export const SAMPLED = 16

/** Records what one rule decides. */
export class RuleRecorder {
  readonly rule: string
  readonly #outcomes = new OutcomeCounter()
  readonly #refused = new BySlot(() => new RefusedClients())
  readonly #busy = new BySlot(() => new SpaceSaving(MOST_BUSY))
  #isShadow = false

  constructor(rule: string) {
    this.rule = rule
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
    const distinct = new DistinctKeys()
    for (const slot of slots) distinct.merge(slot.distinct)
    return {
      rule: this.rule,
      shadow: this.#isShadow && this.rule !== OTHERS,
      ...this.#outcomes.read(Math.floor(nowMs / 1_000)),
      refused: top.keys.map(limitedClient),
      unlistedRefusals: top.unlisted,
      busy: busiest.keys
        .map(({ key, count, error }) => ({ key, requests: (count - error) * SAMPLED }))
        .sort((one, other) => other.requests - one.requests),
      ...(slots.length > 0 && { registers: distinct.toString() }),
    }
  }
}
