import { readFileSync } from "node:fs"
import { findDocuments, ROOT } from "../docs/documents.ts"

/** A count of the documents: what is counted, and how many there are. */
export type Count = readonly [what: string, count: number]

/** The pages that users read: without the reference of the API, the records and the pages for contributors. */
function pagesForUsers(): string[] {
  return findDocuments().filter(
    (path) => path.startsWith("docs/") && !/^docs\/(reference\/api|decisions|inside|operations)\//.test(path),
  )
}

/** Returns the words of a document as `wc -w` counts them. */
export function wordsOf(text: string): number {
  return text.split(/\s+/).filter(Boolean).length
}

/** Counts what readers have to read: words, the longest page, the README, and pictures. */
export function countDocuments(): Count[] {
  const pages = pagesForUsers()
  const text = (path: string): string => readFileSync(ROOT + path, "utf8")
  const longest = pages.toSorted((one, other) => wordsOf(text(other)) - wordsOf(text(one)))[0] ?? ""
  const readme = text("README.md")
  const pictures = pages.flatMap((path) => [
    ...text(path).matchAll(/!\[[^\]]*\]\([^)]*?([\w-]+\.(?:svg|png))\)/g),
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
