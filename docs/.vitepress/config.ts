import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { type DefaultTheme, defineConfig } from "vitepress"
import { anchorOf, links, pageOf } from "./links.ts"
import { MOVED, redirectTo } from "./moved.ts"
import { addressOf, BASE as base, GROUPS, PAGES } from "./pages.ts"
import { searchOptions } from "./search.ts"

const docs = fileURLToPath(new URL("..", import.meta.url))
const core = JSON.parse(readFileSync(join(docs, "../packages/core/package.json"), "utf8"))
const homepage: string | undefined = core.homepage
const repository: string | undefined = core.repository?.url?.replace(/^git\+|\.git$/g, "")
const summary = "Rate limiting for Node that is exact across processes and keeps working without Redis."

/** Folders of documents that are for contributors. */
const INSIDE = ["decisions", "generate", "inside", "operations"]

function isOnSite(path: string): boolean {
  return (
    /\.(md|svg|png|webp)$/.test(path) &&
    !path.startsWith("..") &&
    !INSIDE.some((folder) => path.startsWith(`${folder}/`))
  )
}

/** Returns the sidebar of a group: its pages, and a link to each other group. */
function sidebarOf(opened: string): DefaultTheme.SidebarItem[] {
  return GROUPS.map(({ title, pages }) => {
    const items = pages.map((page) => ({ text: page.title, link: addressOf(page.path) }))
    return title === opened ? { text: title, items } : { text: title, link: items[0]?.link ?? "/" }
  })
}

const sidebar = Object.fromEntries(
  GROUPS.flatMap(({ title, pages }) =>
    pages.map(({ path }) => [addressOf(path), sidebarOf(title)] as const),
  ).toSorted(([one], [other]) => other.length - one.length),
)

export default defineConfig({
  title: "Sluice",
  description: summary,
  lang: "en",
  base,
  cleanUrls: true,
  srcExclude: INSIDE.map((folder) => `${folder}/**`),
  rewrites: pageOf,
  ...(homepage === undefined ? {} : { sitemap: { hostname: homepage } }),
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}icon.svg` }]],
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    anchor: { slugify: anchorOf },
    toc: { slugify: anchorOf },
    headers: { slugify: anchorOf },
    config: (markdown) => links(markdown, docs, isOnSite, repository),
  },
  themeConfig: {
    nav: [
      { text: "Quick start", link: "/start/quick-start" },
      { text: "Questions", link: "/start/questions" },
      { text: "Errors", link: "/errors/" },
    ],
    sidebar: { ...sidebar, "/": sidebarOf("Start") },
    outline: [2, 3],
    search: { provider: "local", options: searchOptions },
    darkModeSwitchLabel: "Dark mode",
  },
  transformPageData(page) {
    const path = page.filePath.replace(/\.md$/, "")
    const description = PAGES.get(path)?.description ?? page.description
    const canonical =
      homepage === undefined
        ? []
        : [
            ["link", { rel: "canonical", href: homepage + addressOf(path) }] as [
              string,
              Record<string, string>,
            ],
          ]
    return { description: description || summary, frontmatter: { ...page.frontmatter, head: canonical } }
  },
  buildEnd({ outDir, pages }) {
    writeFileSync(join(outDir, "llms.txt"), listForModels())
    // The page as it is written, beside the page for browsers.
    for (const page of pages) {
      mkdirSync(dirname(join(outDir, page)), { recursive: true })
      copyFileSync(join(docs, page), join(outDir, page))
    }
    for (const [from, to] of Object.entries(MOVED)) {
      const file = join(outDir, `${from}.html`)
      if (existsSync(file)) throw new Error(`moved.ts: ${from} is a page`)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, redirectTo(base + to.slice(1)))
    }
  },
})

/** Returns the list of all pages for programs that read documents: https://llmstxt.org. */
function listForModels(): string {
  const groups = GROUPS.map(({ title, pages }) => {
    const lines = pages.map((page) => `- [${page.title}](${base}${page.path}.md): ${page.description}`)
    return `## ${title}\n\n${lines.join("\n")}\n`
  })
  return `# Sluice\n\n> ${summary}\n\n${groups.join("\n")}`
}
