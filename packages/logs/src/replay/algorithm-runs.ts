import { InvalidOptionError } from "@sluice/core"
import type { StorableRule } from "@sluice/rules"
import type { LogRecord } from "../reading/log.ts"
import { ReplayRun, type RunContext } from "./replay-run.ts"
import type { AlgorithmResult } from "./result.ts"
import type { RuleStatistics } from "./rule-statistics.ts"

interface Variant {
  readonly rule: string
  readonly algorithm: string
  readonly problem?: string
  readonly run?: ReplayRun
}

/** Replays in each of which one rule uses another algorithm, and all other rules stay unchanged. */
export class AlgorithmRuns {
  readonly #variants: readonly Variant[]

  constructor(algorithms: readonly string[], rules: readonly StorableRule[], context: RunContext) {
    const names = new ReplayRun(rules, context).rules.map(({ rule }) => rule.name)
    this.#variants = names.flatMap((rule, at) =>
      algorithms.map((algorithm) => variantOf(rule, algorithm, at, rules, context)),
    )
  }

  offer(record: LogRecord): void {
    for (const { run } of this.#variants) run?.offer(record)
  }

  get evictions(): number {
    return this.#variants.reduce((sum, { run }) => sum + (run?.replay.evictions ?? 0), 0)
  }

  get results(): readonly AlgorithmResult[] {
    return this.#variants.map(({ rule, algorithm, problem, run }) => {
      if (run === undefined) return { rule, algorithm, ...(problem !== undefined && { problem }) }
      const statistics = run.rules.find((each) => each.rule.name === rule) as RuleStatistics
      return {
        ...{ rule, algorithm },
        refused: statistics.refused,
        clients: statistics.refusedClients,
      }
    })
  }
}

function variantOf(
  rule: string,
  algorithm: string,
  at: number,
  rules: readonly StorableRule[],
  context: RunContext,
): Variant {
  const changed = rules.map((each, index) =>
    index === at ? ({ ...each, name: rule, algorithm } as StorableRule) : each,
  )
  try {
    return { rule, algorithm, run: new ReplayRun(changed, context) }
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    const problem = error.problems
      .map(({ path, message }) => `${path.replace(/^rules\[\d+\]\./, "")}: ${message}`)
      .join("; ")
    return { rule, algorithm, problem }
  }
}
