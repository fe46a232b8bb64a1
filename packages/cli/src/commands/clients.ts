import type { Io } from "../io.ts"
import { errorLines, type OutputLine, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { callService } from "../service-call.ts"

/** Options of `sluice clients`. */
export interface ClientsOptions {
  readonly service: string
  readonly url?: string | undefined
}

/** The response of `ShowClient`. 64-bit numbers are strings in JSON. */
interface Shown {
  readonly limit: string
  readonly remaining: string
  readonly refusal: string
  readonly retryAfterMs?: string
  readonly resetAfterMs: string
  readonly degraded: boolean
  readonly allowedByList: boolean
  /** Absent from older versions of the service. */
  readonly shadow?: boolean
  /** Empty if the counters are not stored in Redis. Absent from older versions of the service. */
  readonly key?: string
}

/** Runs `sluice clients show`: shows what a rule has counted for a client, and why it refuses the client. */
export async function show(
  rule: string,
  client: readonly string[],
  options: ClientsOptions,
  io: Io,
): Promise<CommandOutcome> {
  const { service, url } = options
  const shown = (await callService(url, "ShowClient", { service, rule, client }, io)) as unknown as Shown
  const { degraded } = shown
  return {
    exitCode: degraded ? EXIT.unreachable : EXIT.ok,
    json: { ok: !degraded, service, rule, ...shown },
    text: linesOf(shown),
    ...(degraded && { errors: errorLines(DEGRADED) }),
  }
}

function linesOf(shown: Shown): readonly OutputLine[] {
  const { limit, remaining, refusal, retryAfterMs, resetAfterMs, allowedByList, shadow, key = "" } = shown
  if (allowedByList) return ["not counted: the rule's allow list names the client"]
  const verdict =
    refusal === "" ? tinted("good", "admitted") : tinted("bad", `refused: ${meaningOf(refusal)}`)
  return [
    retryAfterMs === undefined ? verdict : [verdict, `, for ${seconds(retryAfterMs)} more`],
    `${remaining} of ${limit} left, all of them again in ${seconds(resetAfterMs)}`,
    ...(shadow === true ? ["a shadow rule: it never refuses the client"] : []),
    ...(key === "" ? [] : [`key: ${key}`]),
  ]
}

const DEGRADED =
  "the store of the decision service did not respond, so these are the counts of one instance; run the command again"

const MEANINGS: Readonly<Record<string, string>> = {
  quota: "the limit is used up",
  penalty: "blocked by the rule's penalty, for too many refused requests",
  blocked: "blocked by an operator",
  denied: "the rule's deny list names the client",
}

function meaningOf(refusal: string): string {
  return MEANINGS[refusal] ?? refusal
}

function seconds(ms: string): string {
  return `${Math.ceil(Number(ms) / 1_000)} s`
}

const DONE = { ResetClient: "reset", BlockClient: "blocked", UnblockClient: "unblocked" } as const

/** Runs `sluice clients reset`, `block` or `unblock`: changes how a rule treats a client. */
export async function change(
  method: keyof typeof DONE,
  rule: string,
  client: readonly string[],
  options: ClientsOptions & { readonly for?: string | undefined },
  io: Io,
): Promise<CommandOutcome> {
  const { service, url, for: time } = options
  await callService(url, method, { service, rule, client, ...(time !== undefined && { for: time }) }, io)
  const done = DONE[method]
  const whom = client.length === 0 ? " every client" : ""
  const under = `${whom} under rule ${rule} of ${service}${time === undefined ? "" : ` for ${time}`}`
  return {
    exitCode: EXIT.ok,
    json: { ok: true, service, rule, done, ...(time !== undefined && { for: time }) },
    text: [[tinted("good", done), under]],
  }
}
