import { InvalidOptionError, type Problem } from "@sluice/core"
import { show } from "@sluice/core/kit"
import { atOnce, type ServiceMetadata, type StorableRule } from "@sluice/core/rules"
import type { TextFormat } from "../text/document-text.ts"
import type { FileTextError } from "../text/json-text.ts"
import { START } from "../text/text-places.ts"
import { documentsIn, type FileProblem, type ReadDocument } from "./read-documents.ts"

/** One document of a file of rules, without its invalid parts. */
export interface FileDocument {
  /** The service that the rules belong to; absent if the document does not name one. */
  readonly service?: string
  /** The version that the document is based on; absent if the document does not give one. */
  readonly version?: number
  /** The owner and contact of the service. Absent if the document has no `metadata`. */
  readonly metadata?: ServiceMetadata
  /** The valid rules, in the order written. */
  readonly rules: readonly StorableRule[]
  /** The line where the document begins, from 1. */
  readonly line: number
  /** The column where the document begins, from 1, in UTF-16 units. */
  readonly column: number
}

/** The content of a file of rules, with all problems. */
export interface RuleFile {
  /** One document for each service, as `fileRules` loads them. Documents with an unknown service are left out. */
  readonly documents: readonly FileDocument[]
  /** The problems in the order of the file. */
  readonly problems: readonly FileProblem[]
  /**
   * Valid values that are probably mistakes, in the order of the file. Examples: a window below 1,000 without a unit,
   * which means milliseconds, and a method that Node does not know.
   */
  readonly warnings: readonly FileProblem[]
  /** Defaults that a reader may overlook, in the order of the file: a rule without a field counts the whole service. */
  readonly notes: readonly FileProblem[]
}

/**
 * Reads the text of a file of rules as `fileRules` does, for tools that check and edit such files. Returns every
 * document of any service, and the line and column of every problem. A text that is not YAML or JSON is a problem too.
 *
 * `"json"` accepts only strict JSON; `"yaml"` accepts JSON as well. A byte order mark is skipped and does not count as
 * a column.
 * @example
 * ```ts
 * import { readRuleFile } from "@sluice/rules"
 *
 * const { problems } = await readRuleFile("rules:\n  - limit: 5\n    window: 5 minuts\n", "yaml")
 * // [{ path: "rules[0].window", message: '"5 minuts" is not a window', …, line: 3, column: 5 }]
 * ```
 * @throws {@link InvalidOptionError} for another format, or a value that is not a string
 */
export async function readRuleFile(text: string, format: "yaml" | "json"): Promise<RuleFile> {
  requireArguments(text, format)
  return read(text.startsWith("\ufeff") ? text.slice(1) : text, format)
}

function requireArguments(text: unknown, format: unknown): void {
  const problems: Problem[] = []
  if (typeof text !== "string") {
    problems.push({ path: "text", message: `${show(text)} is not a string`, accepted: "the text of a file" })
  }
  if (format !== "yaml" && format !== "json") {
    problems.push({
      path: "format",
      message: `${show(format)} is not a format`,
      accepted: '"yaml" or "json"',
    })
  }
  if (problems.length > 0) throw new InvalidOptionError(problems)
}

function read(text: string, format: TextFormat): RuleFile {
  let all: readonly ReadDocument[]
  try {
    all = atOnce(documentsIn(text, format))
  } catch (error) {
    const { reason, place = START } = error as FileTextError
    return unread({ message: `is not ${format === "json" ? "JSON" : "YAML"}: ${reason}`, ...place })
  }
  if (all.length === 0) {
    return unread({
      message: "is empty",
      accepted: "a document with rules, or `rules: []` for none",
      ...START,
    })
  }
  const documents = all.flatMap(
    ({ isReadable, duplicate, problems, warnings, notes, placed, start, ...document }): FileDocument[] =>
      isReadable && duplicate === undefined ? [{ ...document, ...start() }] : [],
  )
  return {
    documents,
    problems: all.flatMap(({ problems, duplicate = [] }) => problems.concat(duplicate)).sort(inFile),
    warnings: all.flatMap(({ warnings, placed }) => warnings.map(placed)).sort(inFile),
    notes: all.flatMap(({ notes, placed }) => notes.map(placed)).sort(inFile),
  }
}

/** Returns the content of a file without documents. */
function unread(problem: Omit<FileProblem, "path">): RuleFile {
  return { documents: [], problems: [{ path: "", ...problem }], warnings: [], notes: [] }
}

function inFile(a: FileProblem, b: FileProblem): number {
  return a.line - b.line || a.column - b.column
}
