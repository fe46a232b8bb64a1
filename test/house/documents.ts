import { readFileSync } from "node:fs"
import { findDocuments, ROOT } from "../docs/documents.ts"

/** A count of the documents, with the name of the counted thing. */
export type Count = readonly [what: string, count: number]

/** The pages that users read. The API reference, the records and the pages for contributors are excluded. */
function pagesForUsers(): string[] {
  return findDocuments().filter(
    (path) => path.startsWith("docs/") && !/^docs\/(reference\/api|decisions|inside|operations)\//.test(path),
  )
}

/** Returns the words of a document as `wc -w` counts them. */
export function wordsOf(text: string): number {
  return text.split(/\s+/).filter(Boolean).length
}

/** Counts the documents' words, pictures and longest page, and the README's lines. */
export function countDocuments(): Count[] {
  const pages = pagesForUsers()
  const text = (path: string): string => readFileSync(ROOT + path, "utf8")
  const longest = pages.toSorted((one, other) => wordsOf(text(other)) - wordsOf(text(one)))[0] ?? ""
  const readme = text("README.md")
  const pictures = pages.flatMap((path) => [
    ...text(path).matchAll(/!\[[^\]]*\]\([^)]*?([\w-]+\.(?:svg|png|webp))\)/g),
  ])
  return [
    ["pages", pages.length],
    ["words", pages.reduce((sum, path) => sum + wordsOf(text(path)), 0)],
    [`words of the longest page, ${longest}`, wordsOf(text(longest))],
    ["lines of the README", readme.trimEnd().split("\n").length],
    ["links of the README", readme.match(/\]\(/g)?.length ?? 0],
    ["pictures", new Set(pictures.map(([, file]) => file)).size],
  ]
}
