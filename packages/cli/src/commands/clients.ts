import type { ClientAction, ClientsBackend, CountedClient, ShownClient } from "../clients/clients-backend.ts"
import { errorLines, type OutputLine, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"

/** Runs `sluice clients show`: shows what a rule has counted for a client, and why it refuses the client. */
export async function show(client: CountedClient, clients: ClientsBackend): Promise<CommandOutcome> {
  const { service, rule } = client
  const shown = await clients.show(client)
  const { degraded } = shown
  return {
    exitCode: degraded ? EXIT.unreachable : EXIT.ok,
    json: { ok: !degraded, service, rule, ...shown },
    text: linesOf(shown),
    ...(degraded && { errors: errorLines(DEGRADED) }),
  }
}

function linesOf(shown: ShownClient): readonly OutputLine[] {
  const {
    limit,
    granted = "0",
    remaining,
    refusal,
    retryAfterMs,
    resetAfterMs,
    allowedByList,
    shadow,
  } = shown
  const { key = "" } = shown
  if (allowedByList) return ["not counted: the rule's allow list names the client"]
  const verdict =
    refusal === "" ? tinted("good", "admitted") : tinted("bad", `refused: ${meaningOf(refusal)}`)
  // Nobody knows when a request in flight ends, so its wait is only a hint.
  const waitMs = refusal === "in-flight" ? undefined : retryAfterMs
  // Granted units end with the period, even if all units are left.
  const isWhole = Number(resetAfterMs) === 0 || remaining === limit
  return [
    waitMs === undefined ? verdict : [verdict, `, for ${shownTime(waitMs)} more`],
    `${remaining} of ${limit} left${Number(granted) === 0 ? "" : ` (${granted} granted until the period ends)`}${isWhole ? "" : `, all of them again in ${shownTime(resetAfterMs)}`}`,
    ...(shadow === true ? ["a shadow rule: it never refuses the client"] : []),
    ...(key === "" ? [] : [`key: ${key}${shown.counted === false ? " (no counter in Redis)" : ""}`]),
  ]
}

const DEGRADED =
  "the store of the decision service did not respond, so these are the counts of one instance; run the command again"

const MEANINGS: Readonly<Record<string, string>> = {
  quota: "the limit is used up",
  penalty: "blocked by the rule's penalty, for too many refused requests",
  blocked: "blocked by an operator",
  denied: "the rule's deny list names the client",
  "in-flight": "too many requests are in flight",
}

function meaningOf(refusal: string): string {
  return MEANINGS[refusal] ?? refusal
}

const DAY_S = 86_400

function shownTime(ms: string): string {
  const seconds = Math.ceil(Number(ms) / 1_000)
  return seconds > 2 * DAY_S ? `${Math.ceil(seconds / DAY_S)} days` : `${seconds} s`
}

const DONE = { reset: "reset", block: "blocked", unblock: "unblocked", grant: "granted" } as const

/** Shown if there was nothing to do. */
const NOTHING = {
  reset: "nothing was counted",
  block: "",
  unblock: "nothing was blocked",
  grant: "",
} as const

/** Runs `sluice clients reset`, `block`, `unblock` or `grant`: changes how a rule treats a client. */
export async function change(
  action: ClientAction,
  client: CountedClient,
  amount: string | undefined,
  clients: ClientsBackend,
): Promise<CommandOutcome> {
  const isDone = await clients.change(action, client, amount)
  const { service, rule } = client
  const whom = isDone && client.client.length === 0 ? " every client" : ""
  const units = action === "grant" ? ` ${amount} units` : ""
  const time = action === "block" ? amount : undefined
  const under = `${units}${whom} under rule ${rule} of ${service}${time === undefined ? "" : ` for at least ${time}`}`
  return {
    exitCode: EXIT.ok,
    json: {
      ok: true,
      service,
      rule,
      ...(isDone && { done: DONE[action] }),
      ...(time !== undefined && { for: time }),
      ...(action === "grant" && { units: Number(amount) }),
    },
    text: [[isDone ? tinted("good", DONE[action]) : NOTHING[action], under]],
  }
}
