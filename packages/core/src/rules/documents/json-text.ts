/** A syntax error in a JSON text. */
export interface JsonMistake {
  readonly message: string
  /** Offset of the first wrong character, or the length of the text if it ends too early. */
  readonly offset: number
}

/** Most levels of lists and objects, as in DynamoDB. A document of rules needs seven. */
export const MAX_DEPTH = 32

/**
 * The text of a file is not valid JSON or YAML. `message` includes the place: "line 3, column 5: a value is expected".
 */
export class FileTextError extends Error {
  /** The message without the place. */
  readonly reason: string
  /** The place, with both numbers from 1. Absent if the text as a whole is wrong. */
  readonly place: { readonly line: number; readonly column: number } | undefined

  constructor(reason: string, place?: FileTextError["place"], options?: ErrorOptions) {
    super(place === undefined ? reason : `line ${place.line}, column ${place.column}: ${reason}`, options)
    this.reason = reason
    this.place = place
  }
}

/** Returns the value of a JSON text, or its entries if it is a list. Throws FileTextError. */
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

/** Matches white space, then one token (RFC 8259 sections 2, 6 and 7). */
const SPACE = /[ \t\n\r]*/y
const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const STRING = /"[ !#-[\]-\uffff]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[ !#-[\]-\uffff]*)*"/y

/** An open list, or an open object with its names so far. */
type Open = { readonly names?: Set<string> }

/**
 * Returns the first mistake of a JSON text; undefined if it is valid. JSON.parse does not report where an unexpected
 * token is. It also silently takes the last of two members with the same name, which is a mistake here.
 */
export function jsonMistake(text: string): JsonMistake | undefined {
  const open: Open[] = []
  let offset = 0

  const eat = (token: RegExp): string | undefined => {
    token.lastIndex = offset
    const found = token.exec(text)?.[0]
    offset += found?.length ?? 0
    return found
  }
  const eatChar = (char: string): boolean => {
    eat(SPACE)
    if (text[offset] !== char) return false
    offset += 1
    return true
  }
  const expected = (what: string): JsonMistake => ({
    message: offset >= text.length ? `the text ends where ${what} is expected` : `${what} is expected`,
    offset,
  })

  for (;;) {
    const inside = open.at(-1)
    if (inside?.names !== undefined) {
      const start = offset
      const name = eat(STRING)
      if (name === undefined) return expected("a name in double quotes")
      const key = JSON.parse(name) as string
      if (inside.names.has(key))
        return { message: `the member ${name.slice(0, 60)} appears twice`, offset: start }
      inside.names.add(key)
      if (!eatChar(":")) return expected('":"')
    }
    eat(SPACE)
    if (open.length === MAX_DEPTH && /[[{]/.test(text[offset] ?? "")) {
      return { message: `values are nested deeper than ${MAX_DEPTH} levels`, offset }
    }
    if (eatChar("{")) {
      eat(SPACE)
      open.push({ names: new Set() })
      if (text[offset] !== "}") continue
    } else if (eatChar("[")) {
      eat(SPACE)
      open.push({})
      if (text[offset] !== "]") continue
    } else if ((eat(STRING) ?? eat(SCALAR)) === undefined) {
      return expected("a value")
    }
    // A value is complete: close what it ends, or continue after a comma.
    for (;;) {
      const around = open.at(-1)
      if (around === undefined) {
        eat(SPACE)
        return offset === text.length ? undefined : expected("the end of the text")
      }
      if (eatChar(around.names === undefined ? "]" : "}")) {
        open.pop()
        continue
      }
      if (!eatChar(",")) return expected(around.names === undefined ? '"," or "]"' : '"," or "}"')
      eat(SPACE)
      break
    }
  }
}
