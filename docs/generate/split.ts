import type { Chapters } from "./chapters.ts"
import { ORIGIN, type Pages } from "./pages.ts"
import { pageName } from "./router.ts"

/**
 * Moves each chapter of an entry point to its own page. The page of the entry point keeps its introduction and lists
 * the chapters. All links lead to the same exports as before.
 */
export function splitIntoChapters(pages: Pages, chapters: Chapters): Pages {
  const split = new Map(pages)
  for (const door of Object.keys(chapters)) splitPage(split, door)
  return split
}

function splitPage(pages: Map<string, string>, door: string): void {
  const page = `${pageName(door)}.md`
  const [introduction = "", ...texts] = (pages.get(page) ?? "").split(/^(?=## )/m)
  const parts = texts.map((text) => {
    const [heading = "", ...body] = text.split("\n")
    const title = heading.replace("## ", "")
    return { title, file: `${pageName(door)}-${slugOf(title)}.md`, body: body.join("\n") }
  })
  /** The page of each anchor. */
  const pageOf = new Map<string, string>()
  for (const { file, body } of parts) for (const anchor of anchorsIn(body)) pageOf.set(anchor, file)
  const rows = parts.map(({ title, file, body }) => `| [${title}](${file}) | ${exportsIn(body).join(", ")} |`)
  pages.set(page, `${introduction}## Chapters\n\n| chapter | exports |\n| --- | --- |\n${rows.join("\n")}\n`)
  for (const { title, file, body } of parts) {
    // The headings of a chapter are one level higher on a page of its own.
    const text = body.replaceAll(/^##(#+ )/gm, "#$1").trim()
    pages.set(file, `${ORIGIN}\n# ${door}: ${title}\n\n${text}\n`)
  }
  for (const [name, text] of pages) {
    const isPart = name === page || parts.some(({ file }) => file === name)
    const linked = text.replaceAll(
      /\]\(([\w-]*(?:\.md)?)#([\w.$-]+)\)/g,
      (link, target: string, anchor: string) => {
        if (target !== page && !(isPart && target === "")) return link
        const file = pageOf.get(anchor) ?? page
        return file === name ? `](#${anchor})` : `](${file}#${anchor})`
      },
    )
    pages.set(name, linked)
  }
}

function slugOf(title: string): string {
  return title.toLowerCase().replaceAll(/[^a-z]+/g, "-")
}

function anchorsIn(text: string): readonly string[] {
  return [...text.matchAll(/<a id="([^"]+)">/g)].map(([, anchor = ""]) => anchor)
}

/** Returns the names of the exports of a chapter, as links. */
function exportsIn(body: string): readonly string[] {
  const names = [...body.matchAll(/^<a id="([^".]+)"><\/a>\n\n### /gm)].map(([, name = ""]) => name)
  return names.map((name) => `[\`${name}\`](#${name})`)
}
