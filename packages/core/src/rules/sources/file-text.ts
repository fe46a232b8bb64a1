import { LineCounter, parseAllDocuments } from "yaml"
import { jsonMistake } from "./json-text.ts"

/** The text of a file is not what its name says. `message` says where: "line 3, column 5: a value is expected". */
export class FileTextError extends Error {}

/** The values in a text of JSON: one, or those of the list that it is. Throws FileTextError. */
export function parseJsonText(text: string): readonly unknown[] {
  const mistake = jsonMistake(text)
  if (mistake !== undefined) {
    const lines = new LineCounter()
    lines.addNewLine(0)
    for (const { index } of text.matchAll(/\n/g)) lines.addNewLine(index + 1)
    throw mistakeAt(lines, mistake.offset, mistake.message)
  }
  const value: unknown = JSON.parse(text)
  return Array.isArray(value) ? value : [value]
}

/**
 * The values in a text of YAML 1.2: its documents, or the entries of those that are lists. Throws FileTextError for a
 * key that is there twice too, and for aliases that would blow it up to many times its size.
 */
export function parseYamlText(text: string): readonly unknown[] {
  try {
    return readYaml(text)
  } catch (error) {
    if (error instanceof FileTextError) throw error
    // Aliases without an anchor, too many aliases, and nesting deeper than the stack come out as other errors.
    throw new FileTextError((error as Error).message, { cause: error })
  }
}

function readYaml(text: string): readonly unknown[] {
  const lineCounter = new LineCounter()
  return parseAllDocuments(text, { prettyErrors: false, lineCounter }).flatMap((document): unknown[] => {
    // A warning is a tag that is not known: the value would be taken as something that it does not say.
    const mistake = document.errors[0] ?? document.warnings[0]
    if (mistake !== undefined) throw mistakeAt(lineCounter, mistake.pos[0], mistake.message)
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES })
    if (value === null) return []
    return Array.isArray(value) ? value : [value]
  })
}

/** How often an anchor may be repeated, nested ones multiplied: rules repeat little, and never exponentially. */
const MAX_ALIASES = 100

function mistakeAt(lines: LineCounter, offset: number, message: string): FileTextError {
  const { line, col } = lines.linePos(offset)
  return new FileTextError(`line ${line}, column ${col}: ${message}`)
}
