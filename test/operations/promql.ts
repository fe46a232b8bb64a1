import { parser } from "@prometheus-io/lezer-promql"
import type { Exported } from "./exported.ts"

/** Labels that Prometheus adds when it reads metrics. */
const ADDED = ["job", "instance"]

/** A metric that a query reads, with its name and the label matchers that follow it. */
interface Selector {
  readonly name: string
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[]
}

/**
 * Returns the problems of a PromQL query, which are the metrics, labels and values that no exporter writes. Returns
 * ["is not PromQL"] for a syntax error.
 */
export function unknownIn(query: string, exported: Exported): string[] {
  const { selectors, groupings, isValid } = read(query)
  if (!isValid) return ["is not PromQL"]
  const problems: string[] = []
  for (const { name, matchers } of selectors) {
    const labels = exported.get(name)
    if (labels === undefined) {
      problems.push(`no metric ${name}`)
      continue
    }
    for (const { label, operator, value } of matchers) {
      if (ADDED.includes(label)) continue
      if (!labels.has(label)) problems.push(`no label ${label} of ${name}`)
      // An empty value matches series without the label.
      else if (operator === "=" && value !== "" && !labels.get(label)?.has(value)) {
        problems.push(`no ${label}="${value}" of ${name}`)
      }
    }
    for (const label of groupings) {
      if (!ADDED.includes(label) && !labels.has(label)) problems.push(`no label ${label} of ${name}`)
    }
  }
  return problems
}

/** Returns the labels by which a query groups its result. */
export function groupingsOf(query: string): string[] {
  return read(query).groupings
}

/**
 * Reads a query. Assumes that each grouping applies to all metrics of the query, so a query must have only one metric.
 */
function read(query: string): { selectors: Selector[]; groupings: string[]; isValid: boolean } {
  const selectors: Selector[] = []
  const groupings: string[] = []
  let isValid = true
  parser.parse(query).iterate({
    enter({ type, node, from, to }) {
      const textOf = (name: string): string => {
        const child = node.getChild(name)
        return child === null ? "" : query.slice(child.from, child.to)
      }
      if (type.isError) isValid = false
      if (type.name === "VectorSelector") selectors.push({ name: textOf("Identifier"), matchers: [] })
      if (type.name === "UnquotedLabelMatcher") {
        const matchers = selectors.at(-1)?.matchers as Selector["matchers"][number][]
        const value = textOf("StringLiteral").slice(1, -1)
        matchers.push({ label: textOf("LabelName"), operator: textOf("MatchOp"), value })
      }
      if (type.name === "LabelName" && node.parent?.type.name === "GroupingLabels") {
        groupings.push(query.slice(from, to))
      }
    },
  })
  return { selectors, groupings: [...new Set(groupings)], isValid }
}
