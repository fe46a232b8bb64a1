import { parseText } from "./sources.ts"
import { titles } from "./titles.ts"

/** The source of a sentence. */
export type Kind = "code" | "documents" | "titles"

/** One sentence that people read. */
export interface Sentence {
  readonly kind: Kind
  /** The file and the line on which the sentence's paragraph begins. */
  readonly place: string
  readonly text: string
}

/** A text with fewer words is a label, not a sentence. */
const LEAST_WORDS = 4

const lineOf = (text: string, at: number): number => text.slice(0, at).split("\n").length

/** Divides a paragraph into its sentences, without labels. */
function divide(paragraph: string): string[] {
  return paragraph
    .replace(/\s+/g, " ")
    .split(/(?<=[.!?:]) (?=[A-Z`"])/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence.split(" ").length >= LEAST_WORDS)
}

/** Returns the comments, docstrings and messages of a source in TypeScript or Lua. */
function ofCode(path: string, text: string): Sentence[] {
  const found: Sentence[] = []
  const add = (paragraph: string, at: number): void => {
    const place = `${path}:${lineOf(text, at)}`
    for (const sentence of divide(paragraph)) found.push({ kind: "code", place, text: sentence })
  }
  for (const { 1: block = "", index } of text.matchAll(/\/\*\*?(.*?)\*\//gs)) {
    add(block.replace(/^\s*\* ?/gm, "").replace(/^@\w+[^\n]*/gm, ""), index)
  }
  for (const { 0: lines, index } of text.matchAll(/^(?:[ \t]*(?:\/\/|--)[^\n]*\n)+/gm)) {
    add(lines.replace(/^\s*(?:\/\/|--) ?/gm, ""), index)
  }
  if (!path.endsWith(".test.ts")) {
    for (const { 1: message = "", index } of text.matchAll(/["`]([A-Z][^"`\n]{25,300}[.!])["`]/g))
      add(message, index)
  }
  return found
}

/** Returns the sentences and table cells of a document, without its code, its headings and its pictures. */
function ofDocument(path: string, text: string): Sentence[] {
  const blank = (part: string): string => part.replace(/[^\n]/g, "")
  const prose = text.replace(/```.*?```|<!--.*?-->/gs, blank).replace(/!\[[^\]]*\]\([^)]*\)/g, blank)
  return [...prose.matchAll(/[^\n]+(?:\n(?![-*#|\n])[^\n]+)*/g)].flatMap(({ 0: block, index }) => {
    if (block.startsWith("#")) return []
    const parts = block.startsWith("|")
      ? block.split("|").map((cell) => cell.trim())
      : [block.replace(/^[-*] /, "")]
    return parts.flatMap(divide).map((sentence) => ({
      kind: "documents" as const,
      place: `${path}:${lineOf(prose, index)}`,
      text: sentence,
    }))
  })
}

/** Returns the sentences of a document, or of a source and its test titles. */
export function sentencesOf(path: string, text: string): Sentence[] {
  if (path.endsWith(".md")) return ofDocument(path, text)
  const ofTests = path.endsWith(".test.ts") ? titles([parseText(path, text)]) : []
  return [
    ...ofCode(path, text),
    ...ofTests.map(({ place, groups, text: title }) => ({
      kind: "titles" as const,
      place,
      text: [...groups, title].filter(Boolean).join(" > "),
    })),
  ]
}
