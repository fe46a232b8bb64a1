import { InvalidOptionError, type Problem } from "@sluice/core"
import { show } from "@sluice/core/kit"
import {
  atOnce,
  documentSteps,
  locate,
  type MemberProblem,
  type ServiceMetadata,
  type StorableRule,
} from "@sluice/core/rules"
import { type TextFormat, valuesIn } from "../text/document-text.ts"
import type { FileTextError } from "../text/json-text.ts"
import { type PlacedValue, START } from "../text/text-places.ts"
import { below, isReadable, secondDocument } from "./file-documents.ts"

/** A problem in a file of rules with its place: the name of a member, or the entry of a list. */
export interface FileProblem extends Problem {
  /** Line number, from 1. */
  readonly line: number
  /** Column number, from 1, in UTF-16 units as editors count. */
  readonly column: number
}

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
  let values: readonly PlacedValue[]
  try {
    values = [...valuesIn(text, format)]
  } catch (error) {
    const { reason, place = START } = error as FileTextError
    const message = `is not ${format === "json" ? "JSON" : "YAML"}: ${reason}`
    return { documents: [], problems: [{ path: "", message, ...place }], warnings: [], notes: [] }
  }
  if (values.length === 0) {
    return {
      documents: [],
      problems: [{ path: "", message: "is empty", accepted: EMPTY_ACCEPTED, ...START }],
      warnings: [],
      notes: [],
    }
  }
  return readDocuments(values)
}

const EMPTY_ACCEPTED = "a document with rules, or `rules: []` for none"

function readDocuments(values: readonly PlacedValue[]): RuleFile {
  const first = new Map<string | undefined, number>()
  const problems: FileProblem[] = []
  const warnings: FileProblem[] = []
  const notes: FileProblem[] = []
  const documents = values.flatMap((placed, index): FileDocument[] => {
    const {
      problems: found,
      warnings: doubtful,
      notes: noted,
      ...document
    } = atOnce(documentSteps(placed.value))
    const start = placed.placeOf([])
    const place = values.length === 1 ? "" : `[${index}]`
    const name = place === "" || document.service === undefined ? place : `service ${show(document.service)}`
    const inText = (problem: MemberProblem): FileProblem => ({
      ...below(name, locate("", problem)),
      ...placed.placeOf(problem.path),
    })
    problems.push(...found.map(inText))
    warnings.push(...doubtful.map(inText))
    notes.push(...noted.map(inText))
    const earlier = first.get(document.service)
    if (!isReadable({ problems: found.map((problem) => locate("", problem)) })) return []
    if (earlier !== undefined) {
      problems.push({ ...secondDocument(place, document.service, earlier), ...start })
      return []
    }
    first.set(document.service, index)
    return [{ ...document, ...start }]
  })
  return {
    documents,
    problems: problems.sort(inFile),
    warnings: warnings.sort(inFile),
    notes: notes.sort(inFile),
  }
}

function inFile(a: FileProblem, b: FileProblem): number {
  return a.line - b.line || a.column - b.column
}
