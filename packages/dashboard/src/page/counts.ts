import type { Steps } from "../../../../pages/browser/steps-plot.ts"
import type { ActivityOverview, RuleOverview, ServiceOverview } from "../overview/overview.ts"
import {
  type DecisionOutcome,
  OUTCOMES,
  type OutcomeCounts,
  SECONDS,
  SLOT_MS,
  SLOTS,
} from "../recorder/snapshot.ts"
import { count } from "./text.ts"

/** A rule with its service. */
export interface RuleOfService extends RuleOverview {
  readonly service: string
  /** The address of the rule's view. */
  readonly href: string
}

/** Returns the rules of all services in their order. */
export function allRules({ services }: ActivityOverview): readonly RuleOfService[] {
  return services.flatMap(({ service, rules }: ServiceOverview) =>
    rules.map((rule) => ({
      ...rule,
      service,
      href: `#rule/${[service, rule.rule].map(encodeURIComponent).join("/")}`,
    })),
  )
}

/** Number of whole seconds of which rates are the average. */
const RATE_SECONDS = 10

/** Returns the requests per second with an outcome in the last ten whole seconds. */
export function perSecond({ seconds }: RuleOverview, outcome: DecisionOutcome): number {
  return sum(seconds[outcome]?.slice(-RATE_SECONDS - 1, -1)) / RATE_SECONDS
}

/** Returns all requests per second in the last ten whole seconds. */
export function requestsPerSecond(rule: RuleOverview): number {
  return OUTCOMES.reduce((sum, outcome) => sum + (outcome === "degraded" ? 0 : perSecond(rule, outcome)), 0)
}

/** Returns the number of requests with an outcome in five minutes. */
export function inFiveMinutes({ seconds }: RuleOverview, outcome: DecisionOutcome): number {
  return sum(seconds[outcome])
}

function sum(values: readonly number[] = []): number {
  return values.reduce((total, value) => total + value, 0)
}

/** The outcomes of the requests in equal steps of time. */
export interface RuleTimeline extends Steps {
  readonly counts: Readonly<Record<DecisionOutcome, readonly number[]>>
}

/** Returns a rule's last five minutes in seconds. */
export function lastSeconds({ seconds }: RuleOverview, atMs: number): RuleTimeline {
  return timeline(seconds, 1_000, SECONDS, atMs)
}

/** Returns a rule's last day in steps of five minutes. */
export function lastDay({ slots }: RuleOverview, atMs: number): RuleTimeline {
  return timeline(slots, SLOT_MS, SLOTS, atMs)
}

/** The words for outcomes in the order of the tables. */
export const OUTCOME_WORDS: Readonly<Record<DecisionOutcome, string>> = {
  admitted: "admitted",
  refused: "refused",
  shadowed: "would be refused",
  overLimit: "admitted above the limit",
  degraded: "without the store",
}

function timeline(sparse: OutcomeCounts, stepMs: number, length: number, atMs: number): RuleTimeline {
  const padded = (outcome: DecisionOutcome): readonly number[] => {
    const some = sparse[outcome] ?? []
    return [...Array<number>(length - some.length).fill(0), ...some]
  }
  const counts = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, padded(outcome)])) as Record<
    DecisionOutcome,
    readonly number[]
  >
  const at = (outcome: DecisionOutcome, step: number): number => counts[outcome][step] ?? 0
  const admitted = counts.admitted.map((requests, i) => requests + at("overLimit", i))
  const all = admitted.map((requests, i) => requests + at("refused", i) + at("shadowed", i))
  const describe = (step: number): string =>
    OUTCOMES.filter((outcome) => outcome === "admitted" || outcome === "refused" || at(outcome, step) > 0)
      .map((outcome) => `${count(at(outcome, step))} ${OUTCOME_WORDS[outcome]}`)
      .join(", ")
  return {
    from: (Math.floor(atMs / stepMs) - length + 1) * stepMs,
    ...{ stepMs, counts, describe },
    lists: [all, admitted],
  }
}
