import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, it } from "vitest"
import { findDocuments, ROOT } from "./documents.ts"

/** Returns the text of a document without its code blocks. */
function proseOf(document: string): string {
  return readFileSync(ROOT + document, "utf8").replace(/^```.*?^```/gms, "")
}

/** Returns the fragments that links to a document may name after "#": GitHub's names for its headings, and its ids. */
function anchorsOf(document: string): ReadonlySet<string> {
  const prose = proseOf(document)
  const anchors = new Set([...prose.matchAll(/<a id="([^"]+)"/g)].map(([, id = ""]) => id))
  for (const [, heading = ""] of prose.matchAll(/^#+ (.*)$/gm)) {
    const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase()
    const slug = words.replace(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-")
    let anchor = slug
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`
    anchors.add(anchor)
  }
  return anchors
}

/** Returns the relative links whose file or heading does not exist. */
function brokenLinksOf(document: string): string[] {
  return [...proseOf(document).matchAll(/\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]+))?\)/g)]
    .filter(([, path = "", anchor]) => {
      const target = path === "" ? document : join(dirname(document), path)
      if (!existsSync(ROOT + target)) return true
      return anchor !== undefined && target.endsWith(".md") && !anchorsOf(target).has(anchor)
    })
    .map(([link]) => link)
}

it.each(findDocuments())("every link in %s leads to an existing file and heading", (document) => {
  expect(brokenLinksOf(document)).toEqual([])
})
