import type { RegisteredRules } from "@sluice/rules"
import { counted } from "../counted.ts"
import type { Io } from "../io.ts"
import { columns, type OutputLine, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { type Registry, type TableOptions, withTable } from "../table.ts"

/** Runs `sluice rules list --table T`: lists the services in the table. */
export async function list(options: TableOptions, io: Io): Promise<CommandOutcome> {
  const all = await withTable(options, io, everyService)
  const problems = all.flatMap((rules) => rules.problems)
  const shown = METADATA.filter((name) => all.some(({ metadata }) => metadata?.[name] !== undefined))
  const rows = all.map(({ service, version, rules, problems: wrong, metadata }) => [
    ...[service, version, rules.length, wrong.length].map(String),
    ...shown.map((name) => metadata?.[name] ?? ""),
  ])
  const [head = "", ...lines] = columns([["service", "version", "rules", "problems", ...shown], ...rows])
  return {
    exitCode: problems.length === 0 ? EXIT.ok : EXIT.problems,
    json: {
      ok: problems.length === 0,
      services: all.map(({ service, version, rules, problems: wrong, metadata }) => ({
        service,
        version,
        rules: rules.length,
        problems: wrong,
        metadata,
      })),
    },
    text:
      all.length === 0
        ? [`table ${options.table} does not have any rules`]
        : [tinted("quiet", head), ...lines],
    errors:
      problems.length === 0
        ? []
        : [
            ...problems.map(({ path, message }): OutputLine => `${path}: ${message}`),
            tinted("bad", `${counted(problems.length, "problem")}: invalid rules are not in force`),
          ],
  }
}

/** The metadata columns, which are shown if any service has metadata. The column with the longest text comes last. */
const METADATA = ["owner", "contact", "link", "description"] as const

/** Returns the rules of every service, sorted by service. */
export async function everyService(registry: Registry): Promise<RegisteredRules[]> {
  const all: RegisteredRules[] = []
  for await (const rules of registry.list()) all.push(rules)
  return all.sort((a, b) => (a.service < b.service ? -1 : 1))
}
