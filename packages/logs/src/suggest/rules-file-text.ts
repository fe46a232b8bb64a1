import type { StorableRule, StoredRule } from "@sluice/rules"
import { Document, type Scalar, visit } from "yaml"
import { count, percent } from "../quantities.ts"
import { clientsText, effectText, logText } from "./phrases.ts"
import { fieldOf } from "./request-groups.ts"
import type { SuggestGroup, SuggestResult, SuggestWindow } from "./result.ts"
import { windowMembers } from "./window-length.ts"

/** A rule with its evidence. */
interface SuggestedRule {
  readonly rule: StorableRule
  readonly comments: readonly string[]
}

/**
 * Returns a rules file in YAML. Every rule is in shadow mode. Comments contain the evidence, and the candidates that
 * do not become rules.
 */
export function suggestedRulesFile(result: SuggestResult): string {
  const rules = rulesWithEvidence(result)
  const header = [
    'Suggested by "sluice rules suggest". Every rule is in shadow mode: it reports what it would refuse, and refuses nothing.',
    `From ${logText(result.log)}, ${count(result.log.requests)} requests, ${clientsText(result.clients)} by ${result.by.join(" and ")}; ` +
      `${count(result.log.unparsed)} lines unparsed, ${count(result.log.skipped)} skipped, ${count(result.log.late)} late.`,
    ...result.notes,
  ]
  return [
    ...header.flatMap(commentLines),
    rules.length === 0 ? "rules: []" : "rules:",
    ...rules.flatMap(({ rule, comments }) => [
      ...comments.flatMap(commentLines).map((comment) => `  ${comment}`),
      `  - ${flowText(rule)}`,
    ]),
    "",
  ].join("\n")
}

/**
 * Returns the rules of a suggestion: one for each group and window that has candidates, and one for the capacity. Every rule
 * is in shadow mode.
 */
export function suggestedRules(result: SuggestResult): readonly StorableRule[] {
  return rulesWithEvidence(result).map(({ rule }) => rule)
}

/** Returns the rules of a suggestion as a rule document contains them. */
export function suggestedStoredRules(result: SuggestResult): readonly StoredRule[] {
  return suggestedRules(result).map(storedRule)
}

function storedRule({ timeZone, ...rule }: StorableRule): StoredRule {
  return { ...rule, ...(timeZone !== undefined && { time_zone: timeZone }) }
}

function rulesWithEvidence(result: SuggestResult): readonly SuggestedRule[] {
  const names = new Set<string>()
  const { groups, capacity } = result
  return [
    ...groups.flatMap((group) =>
      group.windows.flatMap((window) => suggestedRule(group, window, result, names) ?? []),
    ),
    ...(capacity === undefined
      ? []
      : [
          {
            rule: {
              name: uniqueName(`service-${capacity.window.short}`, names),
              field: "service",
              limit: capacity.limit,
              ...windowMembers(capacity.window, result.algorithm),
              shadow: true,
            } as StorableRule,
            comments: [
              "This capacity was given as an option. A log cannot show what the service can handle.",
              `The highest demand was ${count(capacity.peak)} per ${capacity.window.per}.` +
                (capacity.requests === null
                  ? ""
                  : ` ${count(capacity.limit)} would have refused ${count(capacity.requests)} requests.`),
            ],
          },
        ]),
  ]
}

function suggestedRule(
  { name, match, failed, requests, clients }: SuggestGroup,
  { window, candidates, highestPeak, usualPeak, usualShare, far }: SuggestWindow,
  result: SuggestResult,
  names: Set<string>,
): SuggestedRule | undefined {
  const chosen = candidates.find(({ isRule }) => isRule)
  if (chosen === undefined) return undefined
  const { by } = result
  return {
    rule: {
      name: uniqueName(
        `${match === undefined ? `per-${slug(by.join("-"))}` : slug(name)}-${window.short}`,
        names,
      ),
      field: fieldOf(by),
      limit: chosen.limit,
      ...windowMembers(window, result.algorithm),
      ...(match && { match }),
      shadow: true,
    } as StorableRule,
    comments: [
      ...(match === undefined
        ? []
        : [
            `${name}: ${count(requests)} requests of ${clientsText(clients)}` +
              (failed === undefined ? "." : `; ${count(failed)} requests failed, so it looks like a login.`),
          ]),
      `${percent(usualShare, 1)} of the clients never exceed ${count(usualPeak)} per ${window.per}; the highest peak is ${count(highestPeak)}.`,
      ...(far === 0
        ? []
        : [
            `${far === 1 ? "One client asks" : `${far} clients ask`} for at least three times as much as all others, so no limit makes room for ${far === 1 ? "it" : "them"}.`,
          ]),
      `${chosen.name}: ${effectText(chosen, window.per)} ${REASONS[chosen.name]}${chosen.clients.value === 0 ? NOBODY : ""}`,
      ...candidates
        .filter((each) => each !== chosen)
        .map((each) => `Instead, ${each.name}: ${effectText(each, window.per)}`),
    ],
  }
}

/** The reasons why a candidate becomes the rule. */
const REASONS = {
  careful: "It is the rule because it leaves room above nearly all clients.",
  balanced: "It is the rule because it is just above the ordinary clients.",
  tight: "It is the rule because the algorithm cannot count higher limits.",
} as const
const NOBODY = " It refuses no client of this log."

/** The maximum length of a rule's name before its window and number are appended. */
const LONGEST_SLUG = 48

/** Returns a string as a part of a rule's name, which consists of letters, digits, dots and dashes. */
function slug(text: string): string {
  const found = text
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, LONGEST_SLUG)
  return found === "" ? "rule" : found
}

function uniqueName(name: string, names: Set<string>): string {
  let unique = name
  for (let number = 2; names.has(unique); number++) unique = `${name}-${number}`
  names.add(unique)
  return unique
}

const LONGEST_LINE = 116

/** Returns any text as lines of a comment. */
function commentLines(text: string): string[] {
  const lines: string[] = []
  let line = "#"
  for (const word of visible(text).split(" ")) {
    if (line.length + word.length >= LONGEST_LINE && line.length > 4) {
      lines.push(line)
      line = "#  "
    }
    line += ` ${word}`
  }
  return [...lines, line.trimEnd()]
}

const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u

/** Returns a text with escapes such as `\u{1b}` instead of invisible characters, which could end a comment. */
function visible(text: string): string {
  return text.replace(
    new RegExp(INVISIBLE, "gu"),
    (char) => `\\u{${(char.codePointAt(0) as number).toString(16)}}`,
  )
}

/** Returns a rule on one line: { name: per-ip-1m, field: ip, … } */
function flowText(rule: StorableRule): string {
  const document = new Document(storedRule(rule))
  visit(document, {
    Collection(_key, collection) {
      collection.flow = true
    },
    Scalar(_key, scalar) {
      if (typeof scalar.value === "string" && INVISIBLE.test(scalar.value))
        scalar.type = "QUOTE_DOUBLE" satisfies Scalar["type"]
    },
  })
  const text = document.toString({ lineWidth: 0 }).trimEnd()
  // In double quotes, YAML reads an escape as the character itself, so an invisible character stays visible in the
  // file.
  return text.replace(new RegExp(INVISIBLE, "gu"), (char) => {
    const code = (char.codePointAt(0) as number).toString(16)
    return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`
  })
}
