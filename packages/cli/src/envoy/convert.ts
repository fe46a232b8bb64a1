import { readRuleDocument, type StorableRule } from "@sluice/rules"
import type {
  EnvoyDescriptor,
  EnvoyFile,
  EnvoyLimit,
  EnvoyUnit,
  ImportProblem,
  PlaceInFile,
} from "./read-descriptors.ts"
import { ruleNames } from "./rule-names.ts"

/** The rules of a domain, and every part of its file that these rules do not express. */
export interface Imported {
  readonly domain: string
  readonly rules: readonly StorableRule[]
  /** The problems in the order of the file. */
  readonly problems: readonly ImportProblem[]
}

/** A level of nested descriptors on the path to a limit. */
interface DescriptorStep {
  readonly key: string
  /** The value; "" if the descriptor is for every value except `others`. */
  readonly value: string
  /** Values that have their own descriptor at the same level. */
  readonly others: readonly string[]
}

/** A limit, and the levels of descriptors on the path to it. */
interface FoundLimit {
  readonly steps: readonly DescriptorStep[]
  readonly limit: EnvoyLimit
  readonly isShadow: boolean
}

/**
 * Converts a file of Envoy's rate limit service to rules that make the same decisions over Envoy's protocol. Envoy
 * applies at most one limit to a descriptor: the limit of the configured descriptor with the same keys in the same
 * order. A configured value takes precedence over a key alone.
 */
export function convert({ domain, descriptors, problems: read }: EnvoyFile): Imported {
  const problems = [...read]
  const report = (place: PlaceInFile, message: string): void => void problems.push({ ...place, message })
  const nameOf = ruleNames()
  // Without a domain, the service of the rules is unknown.
  const limits = domain === "" ? [] : limitsOf(descriptors, [], report)
  const rules = limits.flatMap((found): StorableRule[] => {
    const reason = inexpressible(found)
    if (reason !== undefined) {
      report(found.limit.place, `is left out: ${reason}`)
      return []
    }
    const { rules: good, problems: wrong } = readRuleDocument({ rules: [storedRule(found, nameOf(found))] })
    for (const { message, accepted } of wrong) {
      report(
        found.limit.place,
        `is left out: ${message}${accepted === undefined ? "" : `; accepted: ${accepted}`}`,
      )
    }
    return [...good]
  })
  return { domain, rules, problems: problems.sort((a, b) => a.line - b.line || a.column - b.column) }
}

type ReportPart = (place: PlaceInFile, message: string) => void

/**
 * Returns all limits of these descriptors and of their nested descriptors. Reports the limits that no rule can match.
 */
function limitsOf(
  descriptors: readonly EnvoyDescriptor[],
  above: readonly DescriptorStep[],
  report: ReportPart,
): readonly FoundLimit[] {
  return descriptors.flatMap((descriptor) => {
    const { key, value, limit, isShadow, place } = descriptor
    const beside = descriptors.filter((each) => each !== descriptor && each.key === key && each.value !== "")
    const reason =
      value.includes("*") || key.includes("*")
        ? `a rule cannot match ${JSON.stringify(value.includes("*") ? value : key)}, because it compares whole values`
        : value === "" && beside.some((each) => each.value.includes("*"))
          ? `a rule cannot exclude the values with * that have their own descriptor`
          : undefined
    if (reason !== undefined) {
      if (hasLimit(descriptor)) report(place, `is left out, with every limit below it: ${reason}`)
      return []
    }
    const others = value === "" ? beside.map((each) => each.value) : []
    const steps = [...above, { key, value, others }]
    // An unlimited descriptor needs no rule, because descriptors without a rule are admitted.
    const own = limit === undefined || limit.isUnlimited ? [] : [{ steps, limit, isShadow }]
    return [...own, ...limitsOf(descriptor.descriptors, steps, report)]
  })
}

function hasLimit({ limit, descriptors }: EnvoyDescriptor): boolean {
  return (limit !== undefined && !limit.isUnlimited) || descriptors.some(hasLimit)
}

/** Fields that do not contain the unchanged value of the descriptor entry with the same key. */
const OTHER_MEANING: ReadonlySet<string> = new Set(["ip", "service", "method", "route", "descriptor_keys"])

/** Returns why no rule can express the limit. */
function inexpressible({ steps, limit }: FoundLimit): string | undefined {
  const keys = steps.map(({ key }) => fieldOf(key))
  const other = keys.find((key) => OTHER_MEANING.has(key) || key.startsWith("body:"))
  if (other !== undefined) {
    return `the key ${JSON.stringify(other)} has another meaning in rules; give the entry another descriptor_key in Envoy`
  }
  const comma = keys.find((key) => key.includes(","))
  if (comma !== undefined) return `the key ${JSON.stringify(comma)} contains a comma`
  const twice = keys.find((key, index) => keys.indexOf(key) !== index)
  if (twice !== undefined)
    return `the key ${JSON.stringify(twice)} occurs twice, and a rule sees only the first value`
  const open = steps.filter(({ value }) => value === "")
  if (open.length > 1 && open.some(({ others }) => others.length > 0)) {
    return "a rule that counts by several keys cannot exclude the values that have their own descriptor"
  }
  if (limit.requestsPerUnit > 0) return undefined
  if (open.length === steps.length) return "a rule cannot refuse every request; its limit is at least 1"
  return open.some(({ others }) => others.length > 0)
    ? "a rule with a deny list cannot exclude the values of another key"
    : undefined
}

function storedRule({ steps, limit, isShadow }: FoundLimit, name: string): object {
  const { requestsPerUnit, unit } = limit
  const open = steps.filter(({ value }) => value === "")
  const fixed = steps.filter(({ value }) => value !== "")
  const refused = requestsPerUnit === 0 ? fixed.at(-1) : undefined
  const others = open.flatMap((step) => step.others)
  // A rule without a field would count the requests of the whole domain once, instead of each descriptor.
  const counted =
    refused !== undefined ? [refused] : open.length > 0 ? open : [steps.at(-1) as DescriptorStep]
  return {
    name,
    field:
      counted.length === 1
        ? fieldOf((counted[0] as DescriptorStep).key)
        : counted.map(({ key }) => fieldOf(key)),
    match: {
      fields: {
        descriptor_keys: [steps.map(({ key }) => fieldOf(key)).join(",")],
        ...Object.fromEntries(fixed.map(({ key, value }) => [fieldOf(key), [value]])),
      },
    },
    ...windowOf(Math.max(requestsPerUnit, 1), unit),
    algorithm: "fixed-window",
    // Envoy also counts refused requests, which matters for requests with several hits.
    count_rejected: true,
    ...(open.length > 0 && { on_missing: "shared" }),
    ...(refused !== undefined && { deny: [refused.value] }),
    ...(others.length > 0 && { allow: others }),
    ...(isShadow && { shadow: true }),
  }
}

function windowOf(limit: number, unit: EnvoyUnit): object {
  if (unit === "month" || unit === "year") return { limit, per: unit }
  return { rate: { requests_per_unit: limit, unit } }
}

/** Returns the key as it is spelled in rules, where header names are in lower case. */
function fieldOf(key: string): string {
  return key.startsWith("header:") ? key.toLowerCase() : key
}
