import type { RegisteredRules } from "@sluice/rules"
import type { Io } from "../io.ts"
import { type OutputLine, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import {
  isUnchanged,
  type MemberChange,
  metadataChanges,
  type RuleChanges,
  ruleChanges,
} from "../rule-changes.ts"
import { documentsOf, type OwnedDocument, type ReadOptions, readRulesFile } from "../rules-file.ts"
import { type TableOptions, withTable } from "../table.ts"
import { changeLines, metadataLines } from "./change-lines.ts"
import { refusal } from "./check.ts"

/** Options of `sluice rules diff`. */
export interface DiffOptions extends TableOptions, ReadOptions {
  readonly service?: readonly string[]
}

/** Runs `sluice rules diff FILE --table T`: shows what `push` would change in the table. */
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

/** The comparison of a document with the rules of its service in the table. */
export interface Compared {
  readonly document: OwnedDocument
  readonly found: RegisteredRules | undefined
  /** The changes from the rules in the table to the document. */
  readonly changes: RuleChanges
  /** The changes from the metadata in the table to the document. Empty if the document contains no metadata. */
  readonly metadata: readonly MemberChange[]
}

/** Compares a document with the rules of its service in the table. */
export function compare(document: OwnedDocument, found: RegisteredRules | undefined): Compared {
  return {
    document,
    found,
    changes: ruleChanges(found?.rules ?? [], document.rules),
    metadata: metadataChanges(found?.metadata, document.metadata),
  }
}

/** True if the table contains exactly these rules and this metadata, and all of its rules are valid. */
export function isEqual({ found, changes, metadata }: Compared): boolean {
  return found !== undefined && found.problems.length === 0 && isUnchanged(changes) && metadata.length === 0
}

/** Returns a comparison as a JSON value. */
export function comparedValue(compared: Compared): object {
  const { document, found, changes, metadata } = compared
  return {
    service: document.service,
    same: isEqual(compared),
    fileVersion: document.version,
    tableVersion: found?.version,
    ...changes,
    metadata,
    problems: found?.problems ?? [],
  }
}

function comparedLines(compared: Compared): OutputLine[] {
  const { document, found, changes, metadata } = compared
  const { service, version } = document
  const versions = `version ${found?.version} in the table, ${version ?? "none"} in the file`
  const state =
    found === undefined ? "not in the table" : isEqual(compared) ? `the same; ${versions}` : versions
  return [
    [tinted("strong", service), `: ${state}`],
    ...changeLines(changes),
    ...metadataLines(metadata),
    ...(found?.problems ?? []).map(({ path, message }) =>
      tinted("bad", `  ! invalid in the table: ${path}: ${message}`),
    ),
  ]
}
