import { createRequire } from "node:module"
import type { Document, LineCounter, Node } from "yaml"
import { locate } from "../../ground/show.ts"

type Yaml = typeof import("yaml")

let loaded: Yaml | undefined

/**
 * Returns the YAML library. Loads it on the first call, because that takes half as long as loading the rest of the
 * core. A limiter reads its rules file synchronously when it is created, so `import()` cannot be used.
 */
export function yaml(): Yaml {
  loaded ??= createRequire(import.meta.url)("yaml") as Yaml
  return loaded
}

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
   * Returns the place of the member at a problem's path, such as `rules[1].rate.unit`: its name, or the entry of a
   * list. For a missing member, returns the place of the value that lacks it.
   */
  placeOf(path: string): TextPlace
}

/** A value with its place in the text. */
export interface PlacedValue extends Places {
  readonly value: unknown
}

/** Returns the values of a JSON text that was already parsed to `values`. Places are searched only on demand. */
export function placedJson(text: string, values: readonly unknown[]): readonly PlacedValue[] {
  let places: readonly Places[] | undefined
  return values.map((value, index) => ({
    value,
    placeOf(path) {
      // JSON is valid YAML.
      places ??= placesIn(text)
      // A null does not have a place of its own.
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

/** Returns the places of a document's value, or of its entries if it is a list; nothing for an empty document. */
export function placesOf(document: Document.Parsed, lines: LineCounter): readonly Places[] {
  const { isScalar, isSeq } = yaml()
  const top = document.contents
  const values = isSeq<Node>(top) ? top.items : isScalar(top) && top.value === null ? [] : [top]
  return values.map((value) => new ValuePlaces(document, value, lines))
}

/** The target of a path's next part: the place of the name or entry, and its value. */
interface Member {
  readonly at: Node
  readonly value: Node | null
}

/** A node that is not an alias; empty for a member without a value. */
type Resolved = Node | null | undefined

/** Longest part of a path. `show` shortens long names to fit into it. */
const MAX_PART = 1024

class ValuePlaces implements Places {
  readonly #document: Document.Parsed
  readonly #top: Node | null
  readonly #lines: LineCounter
  /** Cache of the members of maps and lists, by the part of a path that leads to them: ".rate", "[1]". */
  readonly #members = new Map<Resolved, ReadonlyMap<string, Member>>()

  constructor(document: Document.Parsed, top: Node | null, lines: LineCounter) {
    this.#document = document
    this.#top = top
    this.#lines = lines
  }

  placeOf(path: string): TextPlace {
    let rest = path === "" || path.startsWith("[") ? path : `.${path}`
    let at = this.#top
    let value = this.#top
    while (rest !== "") {
      const [part, member] = this.#next(resolved(value, this.#document), rest) ?? []
      if (part === undefined || member === undefined) break
      at = member.at
      value = member.value
      rest = rest.slice(part.length)
    }
    const { line, col } = this.#lines.linePos(at?.range?.[0] ?? 0)
    return { line, column: col }
  }

  /**
   * Returns the first part of `rest` that is a member. Names may contain dots and brackets, so every possible end is
   * tried.
   */
  #next(node: Resolved, rest: string): readonly [part: string, member: Member] | undefined {
    const members = this.#membersOf(node)
    for (let end = 1; end <= Math.min(rest.length, MAX_PART); end += 1) {
      const follows = rest[end]
      if (follows !== undefined && follows !== "." && follows !== "[") continue
      const member = members.get(rest.slice(0, end))
      if (member !== undefined) return [rest.slice(0, end), member]
    }
    return undefined
  }

  #membersOf(node: Resolved): ReadonlyMap<string, Member> {
    const known = this.#members.get(node)
    if (known !== undefined) return known
    const members = this.#readMembers(node)
    this.#members.set(node, members)
    return members
  }

  #readMembers(node: Resolved): ReadonlyMap<string, Member> {
    const { isMap, isScalar, isSeq } = yaml()
    if (isSeq<Node>(node)) {
      return new Map(node.items.map((item, index) => [`[${index}]`, { at: item, value: item }]))
    }
    if (!isMap<Node, Node | null>(node)) return NONE
    return new Map(
      // Names that are not scalars were rejected before. A missing name is empty.
      node.items.map(({ key, value }) => [
        partOf(isScalar(key) ? String(key.value ?? "") : ""),
        { at: key, value },
      ]),
    )
  }
}

const NONE: ReadonlyMap<string, Member> = new Map()

/** Returns the name as a path shows it: `.rate`, `["x-key"]`. */
function partOf(name: string): string {
  return locate("at", { path: [name], message: "" }).path.slice("at".length)
}

/** Returns the target of an alias, or any other node itself. */
function resolved(node: Node | null, document: Document.Parsed): Resolved {
  return yaml().isAlias(node) ? node.resolve(document) : node
}
