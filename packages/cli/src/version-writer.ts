import { isDeepStrictEqual } from "node:util"
import { type FileDocument, type RuleFile, readRuleFile } from "@sluice/rules"
import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  type ParsedNode,
  parseAllDocuments,
  type YAMLMap,
} from "yaml"

/** The current version of the document that begins at this place. */
export interface PlacedVersion {
  /** Line and column, both from 1. */
  readonly line: number
  readonly column: number
  readonly version: number
}

/**
 * Returns the text of a rules file with these versions written into its documents. Everything else stays the same,
 * including comments. Returns undefined if the YAML is written in a way that does not allow inserting a version.
 */
export async function withVersions(
  text: string,
  format: "yaml" | "json",
  versions: readonly PlacedVersion[],
): Promise<string | undefined> {
  const written = insert(text, versions)
  const { documents } = await readRuleFile(text, format)
  const wanted = documents.map((document) => {
    const placed = versions.find((each) => isAt(each, document.line, document.column))
    return placed === undefined ? document : { ...document, version: placed.version }
  })
  return isOf(await readRuleFile(written, format), wanted) ? written : undefined
}

/** True if the file is valid and contains exactly these documents, in any place. */
function isOf({ documents, problems }: RuleFile, wanted: readonly FileDocument[]): boolean {
  const said = (document: FileDocument): object => ({ ...document, line: 0, column: 0 })
  return problems.length === 0 && isDeepStrictEqual(documents.map(said), wanted.map(said))
}

function isAt(placed: PlacedVersion, line: number, column: number): boolean {
  return placed.line === line && placed.column === column
}

function insert(text: string, versions: readonly PlacedVersion[]): string {
  const lines = new LineCounter()
  const maps = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: false }).flatMap(topMaps)
  const edits = maps.flatMap((map): Edit[] => {
    const { line, col } = lines.linePos(map.range[0])
    const placed = versions.find((each) => isAt(each, line, col))
    return placed === undefined ? [] : [editOf(text, map, placed.version, col)]
  })
  // Edit from the end, so that earlier places stay valid.
  return edits
    .sort((a, b) => b.from - a.from)
    .reduce((before, { from, to, by }) => before.slice(0, from) + by + before.slice(to), text)
}

/** A part of a string, and its replacement. */
interface Edit {
  readonly from: number
  readonly to: number
  readonly by: string
}

function editOf(text: string, map: YAMLMap.Parsed, version: number, column: number): Edit {
  const pair = map.items.find(({ key }) => isScalar(key) && key.value === "version")
  if (pair !== undefined) {
    // The member has a value, because an empty version is a problem and files with problems are not written.
    const [from, to] = (pair.value as ParsedNode).range
    return { from, to, by: String(version) }
  }
  const [first] = map.items as [Pair<ParsedNode>]
  const [from] = first.key.range
  const isQuoted = text[from] === '"'
  // A block map has one member per line, indented like the map itself.
  const newline = text.includes("\r\n") ? "\r\n" : "\n"
  const separator = map.flow === true ? ", " : newline + " ".repeat(column - 1)
  return { from, to: from, by: `${isQuoted ? '"version"' : "version"}: ${version}${separator}` }
}

function topMaps(document: Document.Parsed): YAMLMap.Parsed[] {
  const { contents } = document
  const values = isSeq(contents) ? contents.items : [contents]
  return values.filter((value) => isMap(value))
}
