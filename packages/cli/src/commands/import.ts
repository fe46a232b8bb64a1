import { existsSync } from "node:fs"
import { formatRuleDocument } from "@sluice/rules"
import { counted } from "../counted.ts"
import { convert, type Imported } from "../envoy/convert.ts"
import { type ImportProblem, readEnvoyFile } from "../envoy/read-descriptors.ts"
import { formatDocuments } from "../format-documents.ts"
import type { Io } from "../io.ts"
import { formatLine, type OutputLine, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { replaceFile } from "../replace-file.ts"
import { isJsonName, type ReadOptions, readText } from "../rules-file.ts"

/** Options of `sluice rules import`. */
export interface ImportOptions extends ReadOptions {
  readonly output?: string
}

/** How calendar periods differ from the units of Envoy's service: UnitToDivider in its src/utils/utilities.go. */
const NOTES = [
  [
    "month",
    "a month is a calendar month in UTC, but 30 days in Envoy's service unless USE_CALENDAR_MONTH_RATE_LIMIT is set; " +
      'for 30 days, write "window: 30 days" instead of "per: month"',
  ],
  [
    "year",
    'a year is a calendar year in UTC, but 365 days in Envoy\'s service; for 365 days, write "window: 365 days" instead of "per: year"',
  ],
] as const

/**
 * Runs `sluice rules import FILE`: converts a file of Envoy's rate limit service to a file of rules. Reports every
 * part that rules cannot express, and converts the other parts.
 */
export async function importRules(given: string, options: ImportOptions, io: Io): Promise<CommandOutcome> {
  const { name, text } = await readText(given, options, io)
  const imported = convert(readEnvoyFile(text))
  const { rules, problems } = imported
  const output = options.output === "-" ? undefined : options.output
  const isWhole = problems.length === 0
  // Write the file even if no limits are left, because otherwise an old file would stay in force.
  const isFile = rules.length > 0 || (isWhole && output !== undefined)
  const written = isFile ? fileOf(imported, name, output !== undefined && isJsonName(output)) : ""
  // An incomplete import must not replace limits that are in force.
  const isKept = !isWhole && output !== undefined && existsSync(output)
  const isReplaced = written !== "" && !isKept
  if (output !== undefined && isReplaced) await replaceFile(output, written)
  return {
    exitCode: isWhole ? EXIT.ok : EXIT.problems,
    json: {
      ok: isWhole,
      ...(output !== undefined
        ? isReplaced && { output }
        : rules.length > 0 && { document: documentOf(imported) }),
      rules: rules.length,
      problems: problems.map((problem) => ({ file: name, ...problem })),
    },
    text: output === undefined ? written : isReplaced ? [`${output}: ${counted(rules.length, "rule")}`] : [],
    errors: isWhole
      ? []
      : [
          ...problems.map((problem): OutputLine => problemLine(name, problem)),
          tinted("bad", `${counted(problems.length, "part")} of ${name} cannot be expressed`),
          ...(isKept
            ? [`${output} is there already and stays as it is; write to a new file with --output`]
            : []),
        ],
    warnings: NOTES.filter(([per]) => rules.some((rule) => rule.per === per)).map(([, note]) =>
      tinted("quiet", `note: ${note}`),
    ),
  }
}

function documentOf({ domain, rules }: Imported) {
  return formatRuleDocument(domain, rules)
}

/** Returns the text of the rules file. In YAML, a comment before the rules lists the problems. */
function fileOf(imported: Imported, name: string, isJson: boolean): string {
  const text = formatDocuments([documentOf(imported)], isJson ? "json" : "yaml")
  if (isJson || imported.problems.length === 0) return text
  const lines = imported.problems.map((problem) => `#   ${formatLine(problemLine(name, problem), false)}\n`)
  return `# Not expressed by these rules:\n${lines.join("")}${text}`
}

function problemLine(name: string, { line, column, path, message }: ImportProblem): OutputLine {
  const at = path === "" ? "" : `${path} `
  return [tinted("strong", `${name}:${line}:${column}: `), at, message]
}
