import { withBase } from "vitepress"
import { h } from "vue"

/** The page for an address that does not exist. The box of the search is in the bar above it. */
export default function NotFound(): ReturnType<typeof h> {
  return h("main", { class: "not-found" }, [
    h("h1", "This page does not exist"),
    h(
      "p",
      "The address may be mistyped, or the page may have moved. Search for the page with the box above (Ctrl K).",
    ),
    h("p", [h("a", { href: withBase("/") }, "Go to the home page")]),
  ])
}
