import { formatRuleDocument, type RegisteredRules } from "@sluice/rules"
import { counted } from "../counted.ts"
import { formatDocuments } from "../format-documents.ts"
import type { Io } from "../io.ts"
import { type OutputLine, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { replaceFile } from "../replace-file.ts"
import { isJsonName } from "../rules-file.ts"
import { type Registry, type TableOptions, withTable } from "../table.ts"
import { everyService } from "./list.ts"

/** Options of `sluice rules pull`. */
export interface PullOptions extends TableOptions {
  readonly service?: readonly string[]
  readonly output?: string
  readonly json?: boolean
}

/** Runs `sluice rules pull --table T`: writes the rules in the table as a file that can be edited and pushed. */
export async function pull(options: PullOptions, io: Io): Promise<CommandOutcome> {
  const { service: services = [], table } = options
  // "-" means standard output, just as it means standard input for `check` and other commands.
  const output = options.output === "-" ? undefined : options.output
  const found = await withTable(options, io, (registry) => read(registry, services))
  const missing = services.filter((service) => !found.some((rules) => rules.service === service))
  const documents = found.map(({ service, rules, version, metadata }) =>
    formatRuleDocument(service, rules, version, metadata),
  )
  const isJson = output === undefined ? options.json === true : isJsonName(output)
  const text = documents.length === 0 ? "" : formatDocuments(documents, isJson ? "json" : "yaml")
  if (output !== undefined && documents.length > 0) await replaceFile(output, text)
  const warnings = [...warningsOf(found), ...missingLines(missing, found.length, table)]
  const rules = found.reduce((sum, each) => sum + each.rules.length, 0)
  return {
    exitCode: warnings.length === 0 ? EXIT.ok : EXIT.problems,
    json:
      output === undefined
        ? documentsValue(documents)
        : { ok: warnings.length === 0, output, services: found.length, rules },
    text:
      output === undefined
        ? text
        : documents.length === 0
          ? []
          : [`${output}: ${counted(found.length, "service")}, ${counted(rules, "rule")}`],
    warnings,
  }
}

async function read(registry: Registry, services: readonly string[]): Promise<RegisteredRules[]> {
  if (services.length === 0) return await everyService(registry)
  const found: RegisteredRules[] = []
  for (const service of new Set(services)) {
    const rules = await registry.get(service)
    if (rules !== undefined) found.push(rules)
  }
  return found
}

/** Returns a single document unchanged, or several documents as a list. Both are valid rules files. */
function documentsValue(documents: readonly object[]): unknown {
  return documents.length === 1 ? documents[0] : documents
}

/** Returns warnings about rules that could not be read, because pushing the pulled file would remove these rules. */
function warningsOf(found: readonly RegisteredRules[]): OutputLine[] {
  return found.flatMap(({ service, problems }): OutputLine[] =>
    problems.length === 0
      ? []
      : [
          tinted(
            "bad",
            `${service}: some rules in the table are invalid and were not pulled; pushing this file would remove them:`,
          ),
          ...problems.map(({ path, message }): OutputLine => `  ${path}: ${message}`),
        ],
  )
}

function missingLines(missing: readonly string[], found: number, table: string): OutputLine[] {
  if (missing.length === 0 && found === 0) return [tinted("bad", `table ${table} does not have any rules`)]
  return missing.map((service) =>
    tinted(
      "bad",
      `${service}: no rules in table ${table}; \`sluice rules list --table ${table}\` lists the services that have rules`,
    ),
  )
}
