import { h, type PageContent, render } from "./element.ts"
import type { AskedChange, ChangeAction, ClientState, FoundCounter, FoundCounters } from "./found-counter.ts"
import { post } from "./post.ts"
import { keyText } from "./tables.ts"
import { named, visible } from "./text.ts"

/** The words on the buttons. */
const VERBS: Readonly<Record<ChangeAction, string>> = {
  blocked: "Block",
  unblocked: "Unblock",
  reset: "Reset",
  granted: "Grant",
}
const DURATIONS = ["5 minutes", "1 hour", "1 day"]
const DEFAULT_DURATION = "1 hour"

/** The token of the operator. It is never stored, so that it is forgotten when the page is closed or loaded again. */
let token = ""
/** Number of dialogs so far. Each of them has new fields. */
let asked = 0

/** Returns the buttons with which an operator changes a client. `row` is passed on to the listener of clicks. */
export function changeButtons(client: FoundCounter, row: number): PageContent {
  const { state, key, rule } = client
  const isRead = typeof state !== "string" && state.isCounted
  const isBlocked = !isRead || state.refusal === "blocked" || state.refusal === "penalty"
  const isShadow = isRead && state.shadow
  const actions: readonly (ChangeAction | false)[] = [
    !isShadow && "blocked",
    "reset",
    isBlocked && "unblocked",
    isRead && state.granted !== undefined && "granted",
  ]
  const buttons = actions.map(
    (action) =>
      action !== false &&
      h(
        "button",
        {
          ...{ type: "button", "data-change": action, "data-row": String(row) },
          "aria-label": `${VERBS[action]} ${keyText(key)} under ${visible(rule)}`,
        },
        VERBS[action],
      ),
  )
  return h("div", { class: "actions" }, buttons, isShadow && h("small", {}, "A shadow rule cannot block."))
}

/** Returns a sentence about what a change does. */
function effect(action: ChangeAction, { rule, key, isShared }: FoundCounter, amount: string): PageContent {
  const where = isShared ? "in all processes that use this store" : "in this process"
  const client = h("bdi", {}, keyText(key))
  const start: PageContent = ["Rule ", named(rule)]
  if (action === "blocked") return [start, " refuses ", client, ` for ${visible(amount)} ${where}.`]
  if (action === "granted")
    return [
      start,
      " admits ",
      visible(amount),
      " more units of ",
      client,
      ` until its period ends, ${where}.`,
    ]
  if (action === "reset")
    return [start, " forgets the requests of ", client, `, and ends its block, ${where}.`]
  return [start, " ends the block of ", client, ` ${where}. The counted requests stay.`]
}

/** A change that waits for its confirmation. */
interface PendingChange {
  readonly action: ChangeAction
  readonly client: FoundCounter
  /** Whether the operator must enter a token. */
  readonly needsToken: boolean
}

/**
 * Asks the operator to confirm a change, and makes it. Then calls `onEnd` with a sentence about what has changed, and with the
 * new state. If the change fails after the operator has closed the dialog, calls `onEnd` with the reason and no state.
 * `text` is the text of the search that has found the client.
 */
export function askChange(
  action: ChangeAction,
  client: FoundCounter,
  text: string,
  operator: FoundCounters["operator"],
  onEnd: (sentence: PageContent, state?: ClientState | string) => void,
): void {
  const dialog = document.getElementById("change") as HTMLDialogElement
  const id = String(++asked)
  let isBusy = false
  const show = (problem = ""): void => {
    const pending = { action, client, needsToken: operator === "token" && token === "" }
    render(dialog, h("form", { class: "asked", "data-key": id }, formOf(pending, problem, isBusy)))
  }
  dialog.oninput = () => show()
  dialog.onclick = ({ target }) => {
    if (!(target instanceof HTMLButtonElement)) return
    const { for: chosen, close } = target.dataset
    const field = input("for")
    if (close !== undefined) dialog.close()
    else if (chosen !== undefined && field !== null) {
      field.value = chosen
      show()
    }
  }
  dialog.onsubmit = async (event) => {
    event.preventDefault()
    if (isBusy) return
    const given = input("token")?.value ?? token
    const { service, rule } = client
    const amount = amountOf(action)
    const sentence = effect(action, client, amount)
    isBusy = true
    show()
    const [time, units] = action === "granted" ? ["", amount] : [amount, ""]
    const change: AskedChange = { action, service, rule, id: client.id, text, for: time, units }
    const { value, problem, status } = await post<ClientState | string>("change", change, given)
    // A token may be valid no longer.
    if (status === 403) token = ""
    else if (value !== undefined) token = given
    isBusy = false
    // The operator may have closed the dialog, and opened one for another change.
    const isOpen = dialog.open && id === String(asked)
    if (value !== undefined) onEnd(["Done. ", sentence], value)
    else if (isOpen) show(problem)
    else onEnd(["Failed: ", sentence, ` ${problem}`])
    if (isOpen && value !== undefined) dialog.close()
  }
  show()
  dialog.showModal()
}

function input(id: string): HTMLInputElement | null {
  return document.getElementById(id) as HTMLInputElement | null
}

/** Returns the duration or the number of units, which the field contains as soon as there is one. */
function amountOf(action: ChangeAction): string {
  if (action === "granted") return input("units")?.value ?? ""
  return action === "blocked" ? (input("for")?.value.trim() ?? DEFAULT_DURATION) : ""
}

function formOf(
  { action, client, needsToken }: PendingChange,
  problem: string,
  isBusy: boolean,
): PageContent {
  const { key } = client
  return [
    h("h2", { class: "line", id: "change-title" }, `${VERBS[action]} `, h("bdi", {}, keyText(key))),
    action === "blocked" && durationFields(),
    action === "granted" && unitsField(),
    needsToken && tokenFields(),
    h("p", { class: "line" }, effect(action, client, amountOf(action) || "…")),
    h("p", { role: "alert", class: "line bad" }, problem),
    h("button", { type: "button", "data-close": "" }, "Cancel"),
    // A disabled button would lose the focus.
    h("button", { "aria-disabled": String(isBusy) }, VERBS[action]),
  ]
}

function durationFields(): PageContent {
  return h(
    "fieldset",
    { class: "line" },
    h("legend", {}, "For how long"),
    DURATIONS.map((each) => h("button", { type: "button", "data-for": each }, each)),
    h("input", {
      id: "for",
      value: DEFAULT_DURATION,
      required: "",
      "aria-label": "Duration",
      autocomplete: "off",
    }),
  )
}

function unitsField(): PageContent {
  return h(
    "fieldset",
    { class: "line" },
    h("label", { for: "units" }, "More units"),
    h("input", { id: "units", type: "number", min: "1", step: "1", required: "", autocomplete: "off" }),
  )
}

function tokenFields(): PageContent {
  return h(
    "fieldset",
    { class: "line" },
    h("legend", {}, "Act as operator"),
    // Password managers keep a password by the name of its user.
    h("input", {
      class: "hidden",
      name: "username",
      value: "operator",
      autocomplete: "username",
      tabindex: "-1",
      "aria-hidden": "true",
    }),
    h("label", { for: "token" }, "Token"),
    h("input", {
      id: "token",
      type: "password",
      required: "",
      pattern: "[ -~]+",
      autocomplete: "current-password",
    }),
  )
}
