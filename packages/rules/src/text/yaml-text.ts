import type { CST, Document, LineCounter, Scalar, YAMLParseError, YAMLWarning } from "yaml"
import { exactNumber, FileTextError, MAX_DEPTH, SERVICE_ID } from "./json-text.ts"
import { type PlacedValue, placesOf } from "./text-places.ts"
import { yaml } from "./yaml.cjs"

/**
 * Generates the values in a YAML 1.2 text: its documents, or the entries of documents that are lists. A document is
 * parsed when its first value is requested. Throws FileTextError for invalid YAML, for a duplicate key, and for
 * aliases that would expand to many times the size of the text.
 */
export function* yamlValues(text: string): Generator<PlacedValue, void> {
  try {
    yield* readYaml(text)
  } catch (error) {
    if (error instanceof FileTextError) throw error
    // The library reports aliases without an anchor, too many aliases, and a stack overflow as other kinds of errors.
    throw new FileTextError((error as Error).message, undefined, { cause: error })
  }
}

function* readYaml(text: string): Generator<PlacedValue, void> {
  const { Composer, LineCounter } = yaml()
  const lines = new LineCounter()
  const composer = new Composer({
    prettyErrors: false,
    logLevel: "error",
    lineCounter: lines,
    // Do not let the composer check for duplicates. It would compare each name with all names before it, which takes
    // seconds for 10,000 overrides.
    uniqueKeys: false,
  })
  for (const document of composer.compose(tokensIn(text, lines))) {
    // Reject a warning, too. A warning means that the value has an unknown tag, so the value would be misread.
    const mistake = document.errors[0] ?? document.warnings[0]
    if (mistake !== undefined) throw inPlainWords(mistake, text, lines)
    checkScalars(document, lines)
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES })
    const places = placesOf(document, lines)
    const values: readonly unknown[] = Array.isArray(value) ? value : [value]
    for (const [index, place] of places.entries()) {
      yield { value: values[index], placeOf: (path) => place.placeOf(path) }
    }
  }
}

/**
 * Converts an error of the YAML library to a FileTextError. If a line is wrong because of the next line, such as
 * "limit: 5" before an indented "window: 1m", the library reports the place of the first line.
 */
function inPlainWords(
  { code, message, pos }: YAMLParseError | YAMLWarning,
  text: string,
  lines: LineCounter,
): FileTextError {
  const [start] = pos
  if (code !== "BLOCK_AS_IMPLICIT_KEY") return mistakeAt(lines, start, message)
  const colon = start + text.slice(start).search(/:\s/)
  const line = text.lastIndexOf("\n", colon) + 1
  if (/^\s*-\S/.test(text.slice(text.lastIndexOf("\n", start) + 1))) {
    return mistakeAt(lines, start, 'write a space after the "-"')
  }
  return line > start
    ? mistakeAt(lines, line, "the line begins with more spaces than the lines before it; align it with them")
    : mistakeAt(
        lines,
        start,
        'the value contains ": "; write the value in quotes, or its members in { } or in lines below',
      )
}

/** Generates the tokens of the text and checks each one. A document is a single token with everything nested in it. */
function* tokensIn(text: string, lines: LineCounter): Generator<CST.Token, void> {
  const { Parser } = yaml()
  for (const token of new Parser(lines.addNewLine).parse(text)) {
    requireModest(token, lines)
    yield token
  }
}

/**
 * Throws FileTextError for a token that no rules need and that would crash the process. Composing values takes stack
 * space for each level. When the stack overflows, Node may crash with "RegExpCompiler Allocation failed" instead of
 * an error that can be caught. A map that is used as a name is converted to a string, and each nested name of this
 * kind doubles its escapes.
 */
function requireModest(token: CST.Token, lines: LineCounter): void {
  const open: { readonly token: CST.Token; readonly depth: number }[] = [{ token, depth: 0 }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token: outer, depth } = next
    if (outer.type === "document" && outer.value !== undefined) open.push({ token: outer.value, depth })
    if (!("items" in outer)) continue
    if (depth >= MAX_DEPTH) {
      throw mistakeAt(lines, outer.offset, `values are nested deeper than ${MAX_DEPTH} levels`)
    }
    for (const { key, value } of outer.items) {
      if (key != null && ("items" in key || key.type === "alias")) {
        throw mistakeAt(lines, key.offset, "the name of a member is not a string")
      }
      if (value != null) open.push({ token: value, depth: depth + 1 })
    }
  }
}

/** Matches a number with leading zeros, which YAML 1.1 reads as octal and YAML 1.2 as decimal. */
const LEADING_ZERO = /^[-+]?0\d/

/**
 * Throws FileTextError for a name that appears twice, and for a name without quotes that is read as another string.
 * For example, 007 is the number 7, so an override would apply to another client. Replaces such a service id, and any
 * other number with leading zeros, with its text.
 */
function checkScalars(document: Document.Parsed, lines: LineCounter): void {
  const { isScalar, visit } = yaml()
  visit(document, {
    Scalar(_key, scalar) {
      if (typeof scalar.value === "number" && LEADING_ZERO.test(scalar.source ?? ""))
        scalar.value = scalar.source
    },
    Pair(_key, { key, value }) {
      if (!isScalar(key) || !SERVICE_ID.test(String(key.value)) || !isScalar(value)) return
      if (typeof value.value === "number") value.value = exactNumber(value.source ?? "")
    },
    Map(_key, { items }) {
      const names = new Set<string>()
      for (const { key } of items) {
        // Other names were rejected before.
        if (!isScalar(key)) continue
        const name = nameOf(key, lines)
        if (names.has(name)) {
          throw mistakeAt(
            lines,
            key.range?.[0] ?? 0,
            `the member ${JSON.stringify(name.slice(0, 60))} appears twice`,
          )
        }
        names.add(name)
      }
    },
  })
}

function nameOf({ value, source = "", range }: Scalar, lines: LineCounter): string {
  if (typeof value === "string") return value
  // The library represents names with a special meaning in YAML 1.1, such as "<<", as symbols.
  if (typeof value === "symbol") return source
  if (value !== null && String(value) === source) return source
  if (source === "") throw mistakeAt(lines, range?.[0] ?? 0, "a member has no name")
  const is = value === null ? "the value null" : `the ${typeof value} ${value}`
  throw mistakeAt(lines, range?.[0] ?? 0, `the name ${source} is read as ${is}; write it in quotes`)
}

/**
 * Maximum number of repetitions of an anchor, multiplied for nested anchors. Rules contain few repetitions, and never
 * exponentially many.
 */
const MAX_ALIASES = 100

function mistakeAt(lines: LineCounter, offset: number, message: string): FileTextError {
  const { line, col } = lines.linePos(offset)
  return new FileTextError(message, { line, column: col })
}
