import type { ActivityOverview } from "../overview/overview.ts"
import { connect } from "./connection.ts"
import { h, render } from "./element.ts"
import { enableSearch } from "./search.ts"
import { clock } from "./text.ts"
import { alertsOf, viewOf } from "./views.ts"

// The script of the page. Each update changes the elements of the current view.

const element = (id: string): HTMLElement => document.getElementById(id) as HTMLElement
let overview: ActivityOverview | undefined
let problem: string | undefined

function show(): void {
  const address = location.hash === "" ? "#now" : location.hash
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === address) link.setAttribute("aria-current", "page")
    else link.removeAttribute("aria-current")
  }
  const at = overview === undefined ? undefined : clock(overview.atMs)
  document.body.classList.toggle("stale", problem !== undefined)
  const stale = at === undefined ? "Not connected" : `Stale since ${at}`
  render(
    element("age"),
    problem === undefined ? (at === undefined ? "Connecting …" : `Live, ${at}`) : `⚠ ${stale}`,
  )
  const alerts = [
    ...(problem === undefined ? [] : [`${stale}. ${problem}`]),
    ...(overview ? alertsOf(overview) : []),
  ]
  render(
    element("alerts"),
    alerts.map((alert) => h("p", {}, `⚠ ${alert}`)),
  )
  if (overview !== undefined)
    render(element("view"), h("div", { "data-key": address }, viewOf(address, overview)))
}

enableSearch(show)
addEventListener("hashchange", () => {
  show()
  scrollTo(0, 0)
})
// Tables below plots are written when they are opened. The event does not bubble.
addEventListener("toggle", show, true)
connect({
  onUpdate(latest) {
    overview = latest
  },
  onState(reason) {
    problem = reason
    show()
  },
})
