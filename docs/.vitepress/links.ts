import { dirname, join, relative } from "node:path"
import type { MarkdownRenderer } from "vitepress"

/** Returns the anchor of a heading as code hosts make it, so that a link works there and on the site. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, "")
    .replaceAll(" ", "-")
}

/** Returns the path of a page on the site. VitePress renames a README to "index", but not the links to it. */
export function pageOf(path: string): string {
  return path.replace(/(^|\/)README\.md/, "$1index.md")
}

/**
 * Makes links work on the site that are written for the files. A link to a README leads to the page of its folder. A link
 * to a file outside of `docs`, or to a page that is not on the site, leads into the repository. As long as the packages
 * name no repository, such a link is only its text.
 */
export function links(
  markdown: MarkdownRenderer,
  docs: string,
  isOnSite: (path: string) => boolean,
  repository: string | undefined,
): void {
  markdown.core.ruler.push("links-of-files", ({ tokens, env }) => {
    const folder = dirname(env.realPath ?? env.path)
    for (const { children } of tokens) {
      let isRemoved = false
      for (const token of children ?? []) {
        if (token.type === "link_close" && isRemoved) {
          token.hidden = true
          token.type = "text"
          isRemoved = false
        }
        if (token.type !== "link_open") continue
        const href = String(token.attrGet("href"))
        if (/^(\w+:|#)/.test(href)) continue
        const [path = "", anchor] = href.split("#")
        const target = relative(docs, join(folder, path))
        if (isOnSite(target)) token.attrSet("href", pageOf(href))
        else if (repository === undefined) {
          isRemoved = true
          token.type = "text"
        } else {
          const file = relative(join(docs, ".."), join(folder, path))
          token.attrSet("href", `${repository}/blob/main/${file}${anchor === undefined ? "" : `#${anchor}`}`)
        }
      }
    }
  })
}
