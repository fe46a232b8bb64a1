import type { Document, LineCounter, Node, Pair, YAMLMap } from "yaml"
import { yaml } from "./yaml.cjs"

/** A place in a text. Both numbers start at 1. */
export interface TextPlace {
  readonly line: number
  readonly column: number
}

/** The start of a text. */
export const START: TextPlace = { line: 1, column: 1 }

/** The places of a value and its members in a text. */
export interface Places {
  /**
   * Returns the place of the member at a problem's path: its name, or the entry of a list. For a missing member,
   * returns the place of the value that lacks it.
   */
  placeOf(path: readonly PropertyKey[]): TextPlace
}

/** A value with its place in the text. */
export interface PlacedValue extends Places {
  readonly value: unknown
}

/** Returns the values of a JSON text that was already parsed to `values`. Places are computed only on demand. */
export function placedJson(text: string, values: readonly unknown[]): readonly PlacedValue[] {
  let places: readonly Places[] | undefined
  return values.map((value, index) => ({
    value,
    placeOf(path) {
      // Parse the text as YAML, because JSON is valid YAML.
      places ??= placesIn(text)
      // A null does not have its own place.
      return places[index]?.placeOf(path) ?? START
    },
  }))
}

/** Returns the places of the values in a text that is known to be valid YAML or JSON. */
export function placesIn(text: string): readonly Places[] {
  const { LineCounter, parseAllDocuments } = yaml()
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, {
    prettyErrors: false,
    uniqueKeys: false,
    logLevel: "error",
    lineCounter: lines,
  })
  return documents.flatMap((document: Document.Parsed) => placesOf(document, lines))
}

/** Returns the places of a document's value, or of its entries if it is a list; none for an empty document. */
export function placesOf(document: Document.Parsed, lines: LineCounter): readonly Places[] {
  const { isScalar, isSeq } = yaml()
  const top = document.contents
  const values = isSeq<Node>(top) ? top.items : isScalar(top) && top.value === null ? [] : [top]
  return values.map((value) => ({
    placeOf(path) {
      const { line, col } = lines.linePos(nodeAt(document, value, path)?.range?.[0] ?? 0)
      return { line, column: col }
    },
  }))
}

type Pairs = ReadonlyMap<PropertyKey, Pair<Node, Node | null>>

/** The cached members of each map, because a map may have tens of thousands of members, each with a problem. */
const knownPairs = new WeakMap<YAMLMap, Pairs>()

/** Returns the members of a map by their names. */
function pairsOf(map: YAMLMap<Node, Node | null>): Pairs {
  const { isScalar } = yaml()
  // Names that are not scalars were rejected before. A missing name becomes an empty string.
  const nameOf = (key: Node): string => (isScalar(key) ? String(key.value ?? "") : "")
  const pairs = knownPairs.get(map) ?? new Map(map.items.map((pair) => [nameOf(pair.key), pair]))
  knownPairs.set(map, pairs)
  return pairs
}

/**
 * Returns the member's name or the list entry at the end of a path. If it does not exist, returns the last existing
 * member or entry on the path.
 */
function nodeAt(document: Document.Parsed, top: Node | null, path: readonly PropertyKey[]): Node | null {
  const { isAlias, isMap, isSeq } = yaml()
  let at = top
  let value: Node | null | undefined = top
  for (const part of path) {
    const holder: Node | null | undefined = isAlias(value) ? value.resolve(document) : value
    if (isMap<Node, Node | null>(holder)) {
      const pair = pairsOf(holder).get(part)
      if (pair === undefined) return at
      at = pair.key
      value = pair.value
    } else {
      const item: Node | undefined = isSeq<Node>(holder) ? holder.items[part as number] : undefined
      if (item === undefined) return at
      at = item
      value = item
    }
  }
  return at
}
