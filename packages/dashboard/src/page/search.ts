import { askChange, changeButtons } from "./changes.ts"
import { h, type PageContent, render } from "./element.ts"
import type { ChangeAction, ClientState, FoundCounter, FoundCounters } from "./found-counter.ts"
import { post } from "./post.ts"
import { keyText, markKeys, REASONS, table, until } from "./tables.ts"
import { clock, count, duration, named, visible } from "./text.ts"

/** Lets a reader search for a client, and change it. Calls back when the marks of found clients have changed. */
export function enableSearch(onFound: () => void): void {
  const input = document.getElementById("key") as HTMLInputElement
  const target = document.getElementById("found") as HTMLElement
  const focus = (): void => target.querySelector("h2")?.focus()
  /** The text of the latest search, which may not have ended. */
  let latest = ""
  let found: ShownResult | undefined
  const show = (content: PageContent): void => {
    markKeys(found?.clients.map(({ key }) => key) ?? [])
    render(target, content)
    onFound()
  }
  const search = async (wanted: string): Promise<void> => {
    input.value = latest = wanted
    const { value, problem } = await post<FoundCounters>("find", { key: wanted })
    // A later search may have ended before this one.
    if (latest !== wanted) return
    found = value && shownResult(wanted, value)
    show(found === undefined ? heading(`The search failed: ${visible(problem)}`) : foundView(found))
    // Let screen readers read the result.
    focus()
  }
  document.getElementById("search")?.addEventListener("submit", (event) => {
    event.preventDefault()
    const wanted = input.value.trim()
    if (wanted !== "") return void search(wanted)
    latest = ""
    found = undefined
    show([])
  })
  const change = (action: ChangeAction, row: number): void => {
    if (found === undefined) return
    const { text, operator, clients } = found
    const client = clients[row] as ShownCounter
    askChange(action, client, text, operator, (sentence, state) => {
      if (found !== undefined && state !== undefined) found = withState(found, client, state)
      const note = noteOf(sentence, state === undefined ? "bad" : "good")
      show(found === undefined ? note : foundView(found, note))
    })
  }
  addEventListener("click", ({ target }) => {
    const button = target instanceof Element ? target.closest("button") : null
    const { client, change: action, row } = button?.dataset ?? {}
    if (client !== undefined) void search(client)
    if (action !== undefined) change(action as ChangeAction, Number(row))
  })
  const dialog = document.getElementById("change") as HTMLDialogElement
  dialog.addEventListener("close", () => {
    // The next dialog may have opened before this event.
    if (dialog.open) return
    // Otherwise the field of the token would keep it.
    render(dialog)
    // The button that has opened the dialog may be gone.
    if (document.activeElement === document.body) focus()
  })
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target instanceof HTMLInputElement) return
    event.preventDefault()
    input.focus()
  })
}

/** A found counter, with the time at which its state was read. */
interface ShownCounter extends FoundCounter {
  readonly atMs: number
}

interface ShownResult extends FoundCounters {
  /** The text of the search. */
  readonly text: string
  /** When the result arrived, in epoch milliseconds of the browser. */
  readonly readMs: number
  readonly clients: readonly ShownCounter[]
}

function shownResult(text: string, found: FoundCounters): ShownResult {
  const clients = found.clients.map((client) => ({ ...client, atMs: found.atMs }))
  return { ...found, text, readMs: Date.now(), clients }
}

/** Returns the result with the new state of a client. The reader may have searched again since the change was asked. */
function withState(found: ShownResult, client: FoundCounter, state: FoundCounter["state"]): ShownResult {
  const atMs = found.atMs + Date.now() - found.readMs
  const isChanged = ({ service, rule, id }: FoundCounter): boolean =>
    service === client.service && rule === client.rule && id === client.id
  const clients = found.clients.map((each) => (isChanged(each) ? { ...each, state, atMs } : each))
  return { ...found, clients }
}

const noteOf = (text?: PageContent, className = "good"): PageContent =>
  h("p", { role: "status", class: className }, text)

const heading = (...content: PageContent[]): PageContent => h("h2", { tabindex: "-1" }, ...content)

function foundView(
  { text, atMs, clients, operator, unread }: ShownResult,
  note: PageContent = noteOf(),
): PageContent {
  const listed = clients.filter(({ refused, requests }) => refused !== undefined || requests !== undefined)
  const key = h("bdi", {}, keyText(text))
  const services = new Set(clients.map(({ service }) => service))
  const rows = clients.map((client, row) => ({ ...client, row }))
  return [
    listed.length === 0
      ? heading(key, " is not among the refused or busy clients")
      : heading(key, ` is in the lists of ${count(listed.length)} ${listed.length === 1 ? "rule" : "rules"}`),
    note,
    table(
      `As of ${clock(atMs)}. Refusals and requests are those of the last 5 to 10 minutes`,
      rows,
      [
        [
          "Rule",
          ({ rule, service }) => [named(rule), services.size > 1 && h("small", {}, " ", named(service))],
        ],
        ["Next request", (client) => stateText(client.state, client.atMs)],
        ...(operator === "no"
          ? []
          : [["Change", ({ row, ...client }: (typeof rows)[number]) => changeButtons(client, row)] as const]),
        ["#Limit", ofCounted(({ limit, granted = 0 }) => limitText(limit, granted))],
        ["#Left", ofCounted(({ remaining }) => count(remaining))],
        ["#Full again", ofCounted(({ resetAfterMs: ms }) => (ms === 0 ? "now" : `in ${duration(ms)}`))],
        ["#Refusals", ({ refused }) => (refused === undefined ? "–" : count(refused.refusals))],
        ["#Requests", ({ requests }) => (requests === undefined ? "–" : `≈ ${count(requests)}`)],
        ["Client", (client) => h("bdi", { class: "key" }, keyText(client.key))],
      ],
      "The lists contain the clients of the last 5 to 10 minutes, and for each rule at most 256 that it refuses.",
    ),
    unread > 0 && h("p", {}, `${count(unread)} more counters were not read.`),
  ]
}

type CountedState = Extract<ClientState, { readonly isCounted: true }>

function ofCounted(cell: (state: CountedState) => string): (client: FoundCounter) => string {
  return ({ state }) => (typeof state === "string" || !state.isCounted ? "–" : cell(state))
}

function limitText(limit: number, granted: number): string {
  return granted === 0 ? count(limit) : `${count(limit)} (${count(granted)} granted)`
}

/** Returns what the rule would do with the next request, and until when. */
function stateText(state: FoundCounter["state"], atMs: number): PageContent {
  if (typeof state === "string") return h("bdi", {}, visible(state))
  if (!state.isCounted) return "not counted: on the allow list"
  const { refusal, retryAfterMs, shadow, degraded } = state
  const note = degraded && h("small", {}, " The store does not respond, so only this process has counted.")
  if (refusal === undefined) return ["admitted", note]
  const wait = retryAfterMs === null ? "" : `; again ${until(atMs + retryAfterMs, atMs)}`
  const verb = shadow ? "would be refused" : "refused"
  return [
    h("strong", { class: shadow ? "warn" : "bad" }, verb),
    `: ${REASONS[refusal] ?? refusal}${wait}`,
    note,
  ]
}
