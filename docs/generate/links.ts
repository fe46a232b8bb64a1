import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Pages } from "./pages.ts"

/** Returns the broken links of pages that are stored in `folder`, as `core.md: (express.md#nothing)`. */
export function brokenLinks(pages: Pages, folder: string): string[] {
  const anchors = new Map([...pages].map(([name, text]) => [name, anchorsIn(text)]))
  return [...pages].flatMap(([page, text]) =>
    [...text.matchAll(/\]\((?!https?:)([^()#]*)(?:#([^()]*))?\)/g)]
      .filter(([, file = "", anchor]) => {
        const known = anchors.get(file === "" ? page : file)
        if (known !== undefined) return anchor !== undefined && !known.has(anchor)
        // Only the file is checked: anchors of handwritten pages come from their headings.
        return !existsSync(join(folder, file))
      })
      .map(([link]) => `${page}: ${link.slice(1)}`),
  )
}

function anchorsIn(text: string): Set<string | undefined> {
  return new Set([...text.matchAll(/<a id="([^"]+)">/g)].map(([, anchor]) => anchor))
}
