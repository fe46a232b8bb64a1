import type { CST, LineCounter } from "yaml"
import { FileTextError, type JsonMistake, MAX_DEPTH } from "./json-text.ts"
import { type PlacedValue, placesOf, yaml } from "./text-places.ts"

/**
 * Yields the values in a text of YAML 1.2: its documents, or the entries of documents that are lists. A document is read
 * when its first value is asked for. Throws FileTextError for invalid YAML, for a duplicate key, and for aliases that would
 * expand to many times the size of the text.
 */
export function* yamlValues(text: string): Generator<PlacedValue, void> {
  try {
    yield* readYaml(text)
  } catch (error) {
    if (error instanceof FileTextError) throw error
    // Aliases without an anchor, too many aliases, and nesting deeper than the stack come out as other errors.
    throw new FileTextError((error as Error).message, undefined, { cause: error })
  }
}

function* readYaml(text: string): Generator<PlacedValue, void> {
  const { Composer, LineCounter } = yaml()
  const lines = new LineCounter()
  const composer = new Composer({ prettyErrors: false, logLevel: "error", lineCounter: lines })
  for (const document of composer.compose(tokensIn(text, lines))) {
    // A warning is a tag that is not known: the value would be taken as something that it does not say.
    const mistake = document.errors[0] ?? document.warnings[0]
    if (mistake !== undefined) throw mistakeAt(lines, mistake.pos[0], mistake.message)
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES })
    const places = placesOf(document, lines)
    const values: readonly unknown[] = Array.isArray(value) ? value : [value]
    for (const [index, place] of places.entries()) {
      yield { value: values[index], placeOf: (path) => place.placeOf(path) }
    }
  }
}

/** Those of each document together. */
function* tokensIn(text: string, lines: LineCounter): Generator<CST.Token, void> {
  const { Parser } = yaml()
  for (const token of new Parser(lines.addNewLine).parse(text)) {
    const mistake = tooMuch(token)
    if (mistake !== undefined) throw mistakeAt(lines, mistake.offset, mistake.message)
    yield token
  }
}

/**
 * What no rules need and what would take down the process that reads it. Composing values out of tokens takes stack for
 * each level, and Node may die where it ends: with "RegExpCompiler Allocation failed", not with an error that could be
 * caught. A name that is a map is made a text, with twice the escapes for each such name in it.
 */
function tooMuch(token: CST.Token): JsonMistake | undefined {
  const open: { readonly token: CST.Token; readonly depth: number }[] = [{ token, depth: 0 }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token: outer, depth } = next
    if (outer.type === "document" && outer.value !== undefined) open.push({ token: outer.value, depth })
    if (!("items" in outer)) continue
    if (depth >= MAX_DEPTH) {
      return { message: `is nested deeper than ${MAX_DEPTH} levels`, offset: outer.offset }
    }
    if (isMap(outer) && outer.items.length > MAX_MEMBERS) {
      return { message: `has more than ${MAX_MEMBERS} members`, offset: outer.offset }
    }
    for (const { key, value } of outer.items) {
      if (key != null && ("items" in key || key.type === "alias")) {
        return { message: "the name of a member is not a text", offset: key.offset }
      }
      if (value != null) open.push({ token: value, depth: depth + 1 })
    }
  }
  return undefined
}

/** The composer compares each name with all before it: 40,000 of them, which fit into a file, would take it many seconds. */
const MAX_MEMBERS = 1_000

function isMap(token: CST.Token): boolean {
  return (
    token.type === "block-map" || (token.type === "flow-collection" && token.start.type === "flow-map-start")
  )
}

/** How often an anchor may be repeated, nested ones multiplied: rules repeat little, and never exponentially. */
const MAX_ALIASES = 100

function mistakeAt(lines: LineCounter, offset: number, message: string): FileTextError {
  const { line, col } = lines.linePos(offset)
  return new FileTextError(message, { line, column: col })
}
