import { h, type PageContent, render } from "./element.ts"
import type { ListedClient } from "./listed-client.ts"
import { keyCell, markKeys, refusedColumns, table } from "./tables.ts"
import { count, name, named } from "./text.ts"

/**
 * Lets a reader search for a client. Calls back when the marks of found clients have changed. `now` returns the server's
 * time in epoch milliseconds, because the clock of the reader's machine may be wrong.
 */
export function enableSearch(onFound: () => void, now: () => number): void {
  const form = document.getElementById("search")
  const input = document.getElementById("key") as HTMLInputElement
  const target = document.getElementById("found") as HTMLElement
  form?.addEventListener("submit", async (event) => {
    event.preventDefault()
    const key = input.value.trim()
    const content = key === "" ? undefined : await search(key, now())
    if (content === undefined) markKeys([])
    render(target, content)
    onFound()
    // Let screen readers read the result.
    target.querySelector("h2")?.focus()
  })
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target instanceof HTMLInputElement) return
    event.preventDefault()
    input.focus()
  })
}

async function search(key: string, atMs: number): Promise<PageContent> {
  const heading = (...content: PageContent[]): PageContent => h("h2", { tabindex: "-1" }, ...content)
  try {
    const response = await fetch("find", {
      method: "POST",
      headers: { "content-type": "application/json", "x-sluice-dashboard": "find" },
      body: JSON.stringify({ key }),
    })
    if (!response.ok) return heading(`The search failed: ${name(await response.text())}`)
    const clients: readonly ListedClient[] = await response.json()
    markKeys(clients.map((client) => client.key))
    if (clients.length === 0)
      return [
        heading(named(key), " is not among the refused or busy clients"),
        h(
          "p",
          {},
          "The lists contain the clients of the last 5 to 10 minutes, and for each rule at most 256 that it refuses.",
        ),
      ]
    return [
      heading(
        `Found ${count(clients.length)} ${clients.length === 1 ? "counter" : "counters"} of `,
        named(key),
      ),
      table(
        "In the last 5 to 10 minutes",
        clients,
        [
          ["Client", (client) => keyCell(client.key)],
          ["Rule", ({ rule }) => named(rule)],
          ["#Requests", ({ requests }) => (requests === undefined ? "few" : `≈ ${count(requests)}`)],
          ...refusedColumns<ListedClient>(atMs, ({ refused }) => refused),
        ],
        "",
      ),
    ]
  } catch {
    return heading("The search failed, because the server does not respond")
  }
}
