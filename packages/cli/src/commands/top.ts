import { setTimeout as sleep } from "node:timers/promises"
import type { Io } from "../io.ts"
import { formatLine, hasColour, printable, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { callService, ServiceCallError } from "../service-call.ts"
import { cut, type TopAnswer, topLines } from "../top-table.ts"
import type { ClientsOptions } from "./clients.ts"

/** Options of `sluice clients top`. */
export interface TopOptions extends ClientsOptions {
  readonly rule?: string
  readonly limit?: number
}

const EVERY_MS = 2_000
/** Shorter than for other calls, because the screen is not drawn during a call. */
const WATCH_TIMEOUT_MS = 4_000

/** Runs `sluice clients top`: lists the clients that the rules of a service refuse most. */
export async function top(options: TopOptions, io: Io): Promise<CommandOutcome> {
  const { service } = options
  const answer = await list(options, io)
  return {
    exitCode: EXIT.ok,
    json: { ok: true, service, ...answer },
    text: topLines(service, answer, sizeOf(io.stdout).columns),
  }
}

/**
 * Runs `sluice clients top --watch`: draws the list every two seconds until Ctrl+C. If the service stops responding, the
 * list stays, with a line that says so.
 */
export async function watchTop(options: TopOptions, io: Io): Promise<CommandOutcome> {
  const ending = new AbortController()
  const { signal } = ending
  io.once?.("SIGINT", () => ending.abort())
  let drawn: TopAnswer | undefined
  try {
    for (;;) {
      let problem: string | undefined
      try {
        drawn = await list(options, io, { signal, timeoutMs: WATCH_TIMEOUT_MS })
      } catch (error) {
        const isStale = error instanceof ServiceCallError && error.isUnreachable && drawn !== undefined
        if (!isStale || signal.aborted) throw error
        problem = staleLine(drawn as TopAnswer, error)
      }
      draw(options.service, drawn as TopAnswer, problem, io)
      await sleep(EVERY_MS, undefined, { signal })
    }
  } catch (error) {
    if (!signal.aborted) throw error
    return { exitCode: EXIT.ok, json: { ok: true }, text: [] }
  }
}

async function list(
  { service, url, rule = "", limit = 0 }: TopOptions,
  io: Io,
  wait?: Parameters<typeof callService>[4],
): Promise<TopAnswer> {
  return (await callService(url, "ListClients", { service, rule, limit }, io, wait)) as unknown as TopAnswer
}

function staleLine({ atMs }: TopAnswer, { message }: Error): string {
  return `stale since ${new Date(Number(atMs)).toTimeString().slice(0, 8)}: ${message}`
}

/** Returns the size of the terminal. A terminal that does not know its size, such as of `docker exec -t`, has size 0. */
function sizeOf({ columns, rows }: Io["stdout"]): { readonly columns: number; readonly rows: number } {
  return { columns: columns || Number.POSITIVE_INFINITY, rows: rows || Number.POSITIVE_INFINITY }
}

/** Draws over the last list on a terminal, and otherwise writes another one. */
function draw(service: string, answer: TopAnswer, problem: string | undefined, { stdout, env }: Io): void {
  const { isTTY = false } = stdout
  const { columns, rows } = sizeOf(stdout)
  const warning = problem === undefined ? [] : [tinted("bad", cut(printable(problem), columns))]
  const lines = [...warning, ...topLines(service, answer, columns)]
  const texts = lines.slice(0, rows - 1).map((line) => formatLine(line, hasColour(stdout, env)))
  // Clear each line before its text. Afterwards, a terminal would clear the last column of a line that fills it.
  if (isTTY) stdout.write(`\u001b[H${texts.map((text) => `\u001b[K${text}\n`).join("")}\u001b[J`)
  else stdout.write(`${texts.join("\n")}\n\n`)
}
