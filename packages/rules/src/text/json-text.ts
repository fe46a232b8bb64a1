/** Maximum nesting depth of lists and objects, the same as in DynamoDB. A rule document needs seven levels. */
export const MAX_DEPTH = 32

/**
 * The text of a file is not valid JSON or YAML. `message` includes the place: "line 3, column 5: a value is expected".
 */
export class FileTextError extends Error {
  /** The message without the place. */
  readonly reason: string
  /** The place, with both numbers from 1. Absent if the mistake concerns the text as a whole. */
  readonly place: { readonly line: number; readonly column: number } | undefined

  constructor(reason: string, place?: FileTextError["place"], options?: ErrorOptions) {
    super(place === undefined ? reason : `line ${place.line}, column ${place.column}: ${reason}`, options)
    this.reason = reason
    this.place = place
  }
}

/** Returns the value of a JSON text, or its entries if it is a list. Throws FileTextError. */
export function parseJsonText(text: string): readonly unknown[] {
  const value: unknown = JSON.parse(withExactIds(text))
  return Array.isArray(value) ? value : [value]
}

/**
 * Returns the number in a string, or the string itself if JavaScript would write the number differently, for example
 * 007, 1e3 or 2^53 + 1.
 */
export function exactNumber(text: string): number | string {
  const number = Number(text)
  return String(number) === text && Number.isInteger(number) === Number.isSafeInteger(number) ? number : text
}

/** Names of the members that contain the id of a service. In these, 1e3 and 1000 are different services. */
export const SERVICE_ID: RegExp = /^service_?id$/i

/** Matches white space, then one token (RFC 8259 sections 2, 6 and 7). */
const SPACE = /[ \t\n\r]*/y
const SCALAR = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const STRING = /"[ !#-[\]-\uffff]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[ !#-[\]-\uffff]*)*"/y

/**
 * Returns the text with quotes around each service id that is not an exact number. Throws FileTextError for the first
 * mistake of a JSON text. JSON.parse does not report where an unexpected token is. JSON.parse also silently accepts
 * two members with the same name, which is a mistake here.
 */
function withExactIds(text: string): string {
  let offset = 0
  let exact = ""
  let copied = 0

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
  const mistake = (message: string, at = offset): FileTextError => {
    const before = text.slice(0, at)
    return new FileTextError(message, {
      line: before.split("\n").length,
      column: at - before.lastIndexOf("\n"),
    })
  }
  const expected = (what: string): FileTextError =>
    mistake(offset >= text.length ? `the text ends where ${what} is expected` : `${what} is expected`)
  const eatName = (names: Set<string>): string => {
    eat(SPACE)
    const start = offset
    const name = eat(STRING)
    if (name === undefined) throw expected("a name in double quotes")
    const key = JSON.parse(name) as string
    if (names.has(key)) throw mistake(`the member ${name.slice(0, 60)} appears twice`, start)
    names.add(key)
    if (!eatChar(":")) throw expected('":"')
    return key
  }
  const eatValue = (depth: number, name = ""): void => {
    eat(SPACE)
    const start = offset
    const isObject = text[offset] === "{"
    if (!isObject && text[offset] !== "[") {
      if (eat(STRING) !== undefined) return
      const scalar = eat(SCALAR)
      if (scalar === undefined) throw expected("a value")
      if (SERVICE_ID.test(name) && /\d/.test(scalar) && exactNumber(scalar) === scalar) {
        exact += `${text.slice(copied, start)}"${scalar}"`
        copied = offset
      }
      return
    }
    if (depth === MAX_DEPTH) throw mistake(`values are nested deeper than ${MAX_DEPTH} levels`)
    offset += 1
    const end = isObject ? "}" : "]"
    if (eatChar(end)) return
    const names = new Set<string>()
    do {
      eatValue(depth + 1, isObject ? eatName(names) : "")
    } while (eatChar(","))
    if (!eatChar(end)) throw expected(`"," or "${end}"`)
  }

  eatValue(0)
  eat(SPACE)
  if (offset < text.length) throw expected("the end of the text")
  return exact + text.slice(copied)
}
