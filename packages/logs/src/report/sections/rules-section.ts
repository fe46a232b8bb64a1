import { releases } from "@sluice/core/stores"
import { count, counted } from "../../quantities.ts"
import type { ReplayResult, RuleResult } from "../../replay/result.ts"
import { alignedRatio, ratio, shownName } from "../format.ts"
import { type Html, type HtmlContent, html } from "../html.ts"
import { countCell, shareCell, type TableRow, table, textCell } from "../table.ts"

/** Returns the section with a row for each rule, and a row for all enforced rules together. */
export function rulesSection({ rules, total }: ReplayResult): Html {
  const ratios = rules[0]?.ratios ?? []
  const columns = [
    { title: "Rule" },
    { title: "Limit" },
    ...["Requests", "Refused", "Share", "Clients refused", "Share"].map(number),
    ...ratios.map(({ upTo }, i) =>
      number(
        upTo === null ? `Peak above ${ratio(ratios[i - 1]?.upTo as number)}` : `Peak up to ${ratio(upTo)}`,
      ),
    ),
    number("Bystanders"),
  ]
  const all: TableRow = {
    kind: "total",
    cells: [
      textCell("All enforced rules"),
      textCell(""),
      ...countCells(total.seen, total.refused, total.clients),
      { shown: "", span: ratios.length + 1 },
    ],
  }
  return html`<section aria-labelledby="rules"><h2 id="rules">Rules</h2>
${
  rules.length === 0
    ? html`<p>There are no rules.</p>`
    : html`${table({
        caption: "Requests and clients that each rule refuses",
        columns,
        rows: [...rules.flatMap((rule) => rowsOf(rule, columns.length)), all],
      })}
<p class="hint">The peak of a client is its highest count in one window, relative to the limit. A slight excess is
often people or a shared address. A bystander is refused although its own peak is within the limit, because it shares a
counter with other clients.</p>`
}</section>`
}

function number(title: string): { title: string; isNumber: true } {
  return { title, isNumber: true }
}

function countCells(
  seen: number,
  refused: number,
  clients: RuleResult["clients"] | { seen: number; refused: number },
) {
  return [
    countCell(seen),
    countCell(refused),
    shareCell(refused, seen),
    countCell(clients.refused),
    shareCell(clients.refused, clients.seen),
  ]
}

function rowsOf(rule: RuleResult, width: number): TableRow[] {
  const name = textCell(html`${ruleName(rule)}${remarks(rule)}`)
  const limit = { shown: limitOf(rule), className: "limits" }
  if (!rule.judged) {
    const reason = html`<strong>Not judged.</strong> The log does not contain ${missingFields(rule)}, which the rule needs.`
    return [{ cells: [name, limit, { shown: reason, span: width - 2, className: "remark" }] }]
  }
  const row: TableRow = {
    cells: [
      name,
      limit,
      ...countCells(rule.seen, rule.refused, rule.clients),
      ...(rule.peak === undefined
        ? rule.ratios.map(({ clients }) => countCell(clients))
        : [{ shown: `all clients together: ${alignedRatio(rule.peak)}`, span: rule.ratios.length }]),
      countCell(rule.clients.bystanders),
    ],
  }
  const { spread } = rule
  if (spread === undefined) return [row]
  const evenly: TableRow = {
    kind: "detail",
    cells: [
      { shown: "with the lines of each second spread evenly", span: 2 },
      ...countCells(rule.seen, spread.refused, { seen: rule.clients.seen, refused: spread.clients }),
      { shown: "", span: rule.ratios.length + 1 },
    ],
  }
  return [row, evenly]
}

/** Returns the name of a rule as the whole report shows it. */
export function ruleName({ name }: { readonly name: string }): Html {
  return html`<bdi>${shownName(name)}</bdi>`
}

/** Returns the limit of a rule, such as "60 per minute" or "5 at a time". */
export function limitOf({ limit, window, algorithm }: RuleResult): Html {
  const span = releases({ algorithm }) ? "at a time" : `per ${shownName(window).replace(/^1 /, "")}`
  return html`${count(limit)} ${span} <small class="algorithm">${shownName(algorithm)}</small>`
}

/** Returns marks that explain the numbers of a rule. */
export function remarks(rule: RuleResult): HtmlContent {
  const marks = [
    rule.shadow && "shadow: counts what it would have refused",
    rule.judged && rule.tooShort && "log too short: the window is longer than a third of the log",
    rule.judged &&
      rule.spread !== undefined &&
      "pessimistic: the times of the log are too coarse for this window",
  ]
  return marks.map((mark) => mark !== false && html`<small class="mark">${mark}</small>`)
}

/** Returns the fields that the log lacks, such as "user_id and plan". */
export function missingFields({ missing, algorithm }: RuleResult): HtmlContent {
  if (releases({ algorithm })) return "the end of each request"
  return missing.map((field, i) => {
    const separator = i === 0 ? "" : i === missing.length - 1 ? " and " : ", "
    return html`${separator}<code>${shownName(field)}</code>`
  })
}

/** Returns how many requests and clients a rule refuses, as a sentence. */
export function refusalText({ shadow, refused, clients, peak }: RuleResult): string {
  const verb = shadow ? "Would refuse" : "Refuses"
  const what =
    refused === 0 ? "no request" : `${counted(refused, "request")} of ${counted(clients.refused, "client")}`
  return `${verb} ${what}.${peak === undefined ? "" : ` The peak of all clients together is ${ratio(peak)} the limit.`}`
}
