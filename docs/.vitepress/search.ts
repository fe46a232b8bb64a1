import type { DefaultTheme } from "vitepress"
import { pageAt } from "./pages.ts"

/** A section of a page, as the index of the search stores it. */
interface Section {
  /** The address with the anchor: "/protect/login#second-factor". */
  readonly id: string
  readonly title: string
  readonly titles: readonly string[]
  readonly text: string
}

const FIELDS = ["title", "titles", "text", "words"]

/**
 * The options of the search. VitePress sends the functions to the browser as text, so each must be complete in itself.
 * Only `extractField` uses the map of pages, and it runs only while the site is built.
 */
export const searchOptions: DefaultTheme.LocalSearchOptions = {
  _render(source, environment, markdown) {
    const html = markdown.render(source, environment)
    if (!environment.relativePath.startsWith("reference/api/")) return html
    // Pages of the API would be found for every word, so only their headings are in the index.
    return (html.match(/<h[1-6][^>]*>.*?<\/h[1-6]>/gs) ?? []).join("\n")
  },
  miniSearch: {
    options: {
      fields: FIELDS,
      storeFields: ["title", "titles"],
      tokenize: (text) => text.split(/[^\p{L}\p{N}_@]+/u).filter(Boolean),
      processTerm(term) {
        const word = term.toLowerCase()
        const ignored =
          " a an and are as at be but by can could did do does for from get had has have how i if in into is it its me my no not of on or our should so that the their them then there these they this to was we what when where which who why will with would you your "
        if (ignored.includes(` ${word} `)) return null
        return word.length > 3 && /[^ius]s$/.test(word) ? word.slice(0, -1) : word
      },
      extractField(section: Section, field: string) {
        if (field !== "words") return section[field as keyof Section] as string
        // The first section of a page has no title above it.
        return section.titles.length === 0 ? (pageAt(section.id)?.words ?? "") : ""
      },
    },
    searchOptions: {
      fuzzy: (term) => (term.length > 5 ? 0.2 : false),
      prefix: (term) => term.length > 2,
      boost: { title: 4, words: 4, titles: 1.5, text: 1 },
      boostDocument(id) {
        if (id.includes("/reference/api/")) return 0.4
        if (id.includes("/errors/") || id.includes("/migrate/")) return 0.7
        if (id.includes("/reference/")) return 0.85
        return id.includes("/start/questions") ? 0.55 : 1
      },
    },
  },
}
