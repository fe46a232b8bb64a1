import { createLimiter } from "@sluice/core"
import type { ClientAddressOptions, Mismatch, RuleExplanation } from "@sluice/core/adapters"
import { redisKey } from "@sluice/redis"
import { ruleName, type StorableRule } from "@sluice/rules"
import { counted } from "../counted.ts"
import type { Io } from "../io.ts"
import { type OutputLine, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { factsOf, type RequestOptions } from "../request-options.ts"
import { documentsOf, type OwnedDocument, type ReadOptions, readRulesFile } from "../rules-file.ts"
import { refusal } from "./check.ts"
import { mismatchText } from "./mismatch-text.ts"

/** Options of `sluice rules match`. */
export interface MatchOptions extends ReadOptions, RequestOptions {
  readonly service?: readonly string[]
  readonly cost?: number
  readonly unit?: ReadonlyMap<string, number>
  readonly prefix?: string
  readonly ipv6Prefix?: ClientAddressOptions["ipv6Prefix"]
}

/** A rule, and its effect on the request. */
interface Explained extends RuleExplanation {
  readonly rule: StorableRule
  readonly key: string | undefined
  readonly penaltyKey: string | undefined
}

/**
 * Runs `sluice rules match FILE`: shows which rules apply to a request, with their counters and keys, and why other
 * rules do not apply.
 */
export async function match(name: string, options: MatchOptions, io: Io): Promise<CommandOutcome> {
  const file = await readRulesFile(name, options, io)
  if (file.problems.length > 0) return refusal(file)
  const looked = new Set<string>()
  const services: { readonly service: string; readonly rules: readonly Explained[] }[] = []
  for (const document of documentsOf(file, options.service)) {
    services.push({ service: document.service, rules: await explain(document, options, looked) })
  }
  return {
    exitCode: EXIT.ok,
    json: {
      ok: true,
      services: services.map(({ service, rules }) => ({ service, rules: rules.map(ruleValue) })),
    },
    text: services.flatMap(({ service, rules }) => [headOf(service, rules), ...rules.flatMap(ruleLines)]),
    warnings: [...looked].map((field) => {
      const advice = `if the app reads it with its option fields, give --field ${field}=...`
      return tinted(
        "quiet",
        `note: ${field} was looked up in the parameters, query, body and headers; ${advice}`,
      )
    }),
  }
}

/**
 * Explains the effect of a document's rules on the request, without counting the request. Collects in `looked` the
 * names of fields that no option provides, because the limiter looks these fields up in the request.
 */
async function explain(
  { service, rules }: OwnedDocument,
  { cost, unit, prefix, ipv6Prefix, ...options }: MatchOptions,
  looked: Set<string>,
): Promise<readonly Explained[]> {
  const own = new Map(options.field)
  const limiter = createLimiter({
    service,
    ipv6Prefix,
    rules: rules.map((rule) => ({ field: "service", ...rule })),
    fields(field) {
      if (own.has(field)) return () => own.get(field)
      looked.add(field)
      return undefined
    },
    units: (name) => unit?.get(name) ?? 1,
    // Log nothing, because a limiter's warnings are about the code of an app, and this command already prints every
    // missing value.
    logger: { warn() {}, error() {} },
  })
  try {
    const byName = new Map(rules.map((rule) => [ruleName(rule), rule]))
    const explained = await limiter.explain(factsOf(options), { cost })
    return explained.map((each) => ({
      ...each,
      rule: byName.get(each.policy) as StorableRule,
      key: each.counter && redisKey(each.counter, prefix),
      penaltyKey: each.penalty && redisKey(each.penalty, prefix),
    }))
  } finally {
    await limiter.close()
  }
}

function ruleValue({
  policy,
  applies,
  shadow,
  unit,
  cost,
  refusal,
  counter,
  key,
  penaltyKey,
  mismatches,
}: Explained) {
  return {
    rule: policy,
    applies,
    shadow,
    unit,
    cost,
    refusal,
    partition: counter?.partition,
    key,
    penaltyKey,
    mismatches,
  }
}

function headOf(service: string, rules: readonly Explained[]): OutputLine {
  const applying = rules.filter(({ applies }) => applies).length
  return [tinted("strong", service), `: ${applying} of ${counted(rules.length, "rule")} for this request`]
}

function ruleLines(explained: Explained): readonly OutputLine[] {
  const { policy, applies, shadow, mismatches, rule } = explained
  if (!applies) {
    return [
      `  - ${policy}`,
      ...mismatches.map(
        (mismatch: Mismatch): OutputLine => tinted("quiet", `      ${mismatchText(mismatch, rule)}`),
      ),
    ]
  }
  return [
    tinted("good", `  + ${policy}${shadow ? " (shadow: never refuses)" : ""}`),
    ...countLines(explained),
  ]
}

function countLines({
  rule,
  unit,
  cost,
  refusal,
  counter,
  key,
  penaltyKey,
}: Explained): readonly OutputLine[] {
  if (refusal === "missing-field") return [tinted("bad", `      refused: ${fieldsOf(rule)} is missing`)]
  return [
    ...(refusal === "denied" ? [tinted("bad", "      refused: on the deny list")] : []),
    `      counter: ${counterText(rule, counter?.partition as string)}`,
    `      cost: ${cost} of ${counter?.policy.limit}${unit === "requests" ? "" : ` ${unit}`}${windowText(rule)}`,
    `      key: ${key}`,
    ...(penaltyKey === undefined ? [] : [`      key of blocks: ${penaltyKey}`]),
  ]
}

function counterText(rule: StorableRule, partition: string): string {
  if (partition === "") return "the whole service"
  const fields = fieldsOf(rule)
  if (partition === "@shared") return `${partition}, shared by all requests without ${fields}`
  if (partition.startsWith("@ip:")) return `${partition}, because ${fields} is missing`
  return `${fields} ${partition}`
}

function fieldsOf({ field = "service" }: StorableRule): string {
  return [field].flat().join(" + ")
}

function windowText({ per, window = per }: StorableRule): string {
  return window === undefined ? "" : ` per ${typeof window === "number" ? `${window} ms` : window}`
}
