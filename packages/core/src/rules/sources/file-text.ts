import { jsonMistake } from "./json-text.ts"

/** The text of a file is not what its name says. `message` says where: "line 3, column 5: a value is expected". */
export class FileTextError extends Error {
  /** The message without the place. */
  readonly reason: string
  /** Both from 1; absent where it is the text as a whole. */
  readonly place: { readonly line: number; readonly column: number } | undefined

  constructor(reason: string, place?: FileTextError["place"], options?: ErrorOptions) {
    super(place === undefined ? reason : `line ${place.line}, column ${place.column}: ${reason}`, options)
    this.reason = reason
    this.place = place
  }
}

/** The values in a text of JSON: one, or those of the list that it is. Throws FileTextError. */
export function parseJsonText(text: string): readonly unknown[] {
  const mistake = jsonMistake(text)
  if (mistake !== undefined) {
    const before = text.slice(0, mistake.offset)
    const line = before.split("\n").length
    const column = mistake.offset - before.lastIndexOf("\n")
    throw new FileTextError(mistake.message, { line, column })
  }
  const value: unknown = JSON.parse(text)
  return Array.isArray(value) ? value : [value]
}
