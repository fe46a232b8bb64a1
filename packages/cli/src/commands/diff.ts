import type { RegisteredRules } from "@sluice/core"
import type { Io } from "../io.ts"
import { type OutputLine, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { isUnchanged, type RuleChanges, ruleChanges } from "../rule-changes.ts"
import { documentsOf, type OwnedDocument, type ReadOptions, readRulesFile } from "../rules-file.ts"
import { type TableOptions, withTable } from "../table.ts"
import { changeLines } from "./change-lines.ts"
import { refusal } from "./check.ts"

/** Options of `sluice rules diff`. */
export interface DiffOptions extends TableOptions, ReadOptions {
  readonly service?: readonly string[]
}

/** `sluice rules diff FILE --table T`: what `push` would change in the table. */
export async function diff(name: string, options: DiffOptions, io: Io): Promise<CommandOutcome> {
  const file = await readRulesFile(name, options, io)
  if (file.problems.length > 0) return refusal(file)
  const documents = documentsOf(file, options.service)
  const compared = await withTable(options, io, async (registry) => {
    const all: Compared[] = []
    for (const document of documents) all.push(compare(document, await registry.get(document.service)))
    return all
  })
  const isSame = compared.every(isEqual)
  return {
    exitCode: isSame ? EXIT.ok : EXIT.problems,
    json: { ok: isSame, services: compared.map(comparedValue) },
    text: compared.flatMap(comparedLines),
  }
}

/** A document beside what the table has for its service. */
export interface Compared {
  readonly document: OwnedDocument
  readonly found: RegisteredRules | undefined
  /** What makes the document of what is found. */
  readonly changes: RuleChanges
}

/** Puts a document beside what the table has for its service. */
export function compare(document: OwnedDocument, found: RegisteredRules | undefined): Compared {
  return { document, found, changes: ruleChanges(found?.rules ?? [], document.rules) }
}

/** Whether the table has just these rules, and none that are wrong. */
export function isEqual({ found, changes }: Compared): boolean {
  return found !== undefined && found.problems.length === 0 && isUnchanged(changes)
}

/** A comparison for programs. */
export function comparedValue(compared: Compared): object {
  const { document, found, changes } = compared
  return {
    service: document.service,
    same: isEqual(compared),
    fileVersion: document.version,
    tableVersion: found?.version,
    ...changes,
    problems: found?.problems ?? [],
  }
}

function comparedLines(compared: Compared): OutputLine[] {
  const { document, found, changes } = compared
  const { service, version } = document
  const versions = `version ${found?.version} in the table, ${version ?? "none"} in the file`
  const state =
    found === undefined ? "not in the table" : isEqual(compared) ? `the same; ${versions}` : versions
  return [
    [tinted("strong", service), `: ${state}`],
    ...changeLines(changes),
    ...(found?.problems ?? []).map(({ path, message }) =>
      tinted("bad", `  ! wrong in the table: ${path}: ${message}`),
    ),
  ]
}
