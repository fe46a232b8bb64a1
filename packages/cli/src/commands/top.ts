import { setTimeout as sleep } from "node:timers/promises"
import { StoreUnavailableError } from "@sluice/core"
import type { ClientsBackend, TopList, TopQuery } from "../clients/clients-backend.ts"
import type { Io } from "../io.ts"
import { formatLine, hasColour, type OutputLine, printable, tinted } from "../line.ts"
import { type CommandOutcome, EXIT } from "../outcome.ts"
import { ServiceCallError } from "../service-call.ts"
import { cut, topLines } from "../top-table.ts"

const EVERY_MS = 2_000
/** Shorter than for other calls, because the screen is not drawn during a call. */
const WATCH_TIMEOUT_MS = 4_000

/** Runs `sluice clients top`: lists the clients that the rules of a service refuse most. */
export async function top(query: TopQuery, clients: ClientsBackend, io: Io): Promise<CommandOutcome> {
  const { services, missing } = await clients.top(query)
  const [named] = query.service === undefined ? [] : services
  return {
    exitCode: EXIT.ok,
    json: { ok: true, ...(named ?? { services }), missing },
    text: linesOf(services, sizeOf(io.stdout).columns, query),
    ...(missing !== undefined && { warnings: [tinted("changed", missing)] }),
  }
}

/**
 * Runs `sluice clients top --watch`: draws the list every two seconds until Ctrl+C. If the service stops responding, the
 * list stays, with a line that says so.
 */
export async function watchTop(query: TopQuery, clients: ClientsBackend, io: Io): Promise<CommandOutcome> {
  const ending = new AbortController()
  const { signal } = ending
  io.once?.("SIGINT", () => ending.abort())
  let drawn: TopList | undefined
  try {
    for (;;) {
      let problem: string | undefined
      try {
        drawn = await clients.top(query, { signal, timeoutMs: WATCH_TIMEOUT_MS })
        signal.throwIfAborted()
        problem = drawn.missing
      } catch (error) {
        if (!isUnreachable(error) || drawn === undefined || signal.aborted) throw error
        problem = staleLine(drawn, error)
      }
      draw(drawn, problem, query, io)
      await sleep(EVERY_MS, undefined, { signal })
    }
  } catch (error) {
    if (!signal.aborted) throw error
    return { exitCode: EXIT.ok, json: { ok: true }, text: [] }
  }
}

function isUnreachable(error: unknown): error is Error {
  return error instanceof StoreUnavailableError || (error instanceof ServiceCallError && error.isUnreachable)
}

function staleLine({ services: [first] }: TopList, { message }: Error): string {
  const since = first === undefined ? "" : ` since ${new Date(Number(first.atMs)).toTimeString().slice(0, 8)}`
  return `stale${since}: ${message}`
}

function linesOf(services: TopList["services"], width: number, { rule }: TopQuery): readonly OutputLine[] {
  return services.flatMap((answer, at) => [...(at === 0 ? [] : [""]), ...topLines(answer, width, rule)])
}

/** Returns the size of the terminal. A terminal that does not know its size, such as of `docker exec -t`, has size 0. */
function sizeOf({ columns, rows }: Io["stdout"]): { readonly columns: number; readonly rows: number } {
  return { columns: columns || Number.POSITIVE_INFINITY, rows: rows || Number.POSITIVE_INFINITY }
}

/** Draws over the last list on a terminal, and otherwise writes another one. */
function draw(
  { services }: TopList,
  problem: string | undefined,
  query: TopQuery,
  { stdout, env }: Io,
): void {
  const { isTTY = false } = stdout
  const { columns, rows } = sizeOf(stdout)
  const warning = problem === undefined ? [] : [tinted("bad", cut(printable(problem), columns))]
  const lines = [...warning, ...linesOf(services, columns, query)]
  const texts = lines.slice(0, rows - 1).map((line) => formatLine(line, hasColour(stdout, env)))
  // Clear each line before its text. Afterwards, a terminal would clear the last column of a line that fills it.
  if (isTTY) stdout.write(`\u001b[H${texts.map((text) => `\u001b[K${text}\n`).join("")}\u001b[J`)
  else stdout.write(`${texts.join("\n")}\n\n`)
}
