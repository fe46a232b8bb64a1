import { startLimitedApi } from "../../test/servers/limited-api.ts"
import { type ContenderProcess, startContender } from "../contender-process.ts"
import { percentile } from "../report/statistics.ts"
import type { Allowed } from "./contenders.ts"
import type { LoadTask, ProcessResult, Task } from "./worker.ts"

/** The limit of a server. */
export interface Scenario extends Allowed {
  readonly algorithm: "sliding-window" | "token-bucket"
}

/** One run of a client. */
export interface Sample {
  /** The numbers of requests that the server received and that it refused. */
  readonly sent: number
  readonly refused: number
  /** The reason of each failed call. */
  readonly failures: readonly string[]
  /** The times until the first and the last process have finished. */
  readonly wallMs: number
  readonly firstMs: number
  readonly p99Ms: number
}

export const PROCESSES = 2
export const WORKERS = 20
export const CALLS = 300

const WORKER = new URL("./worker.ts", import.meta.url)

/** The processes of one client. The processes start only once, so that no run includes their start. */
export interface Contender {
  readonly name: string
  measure(scenario: Scenario): Promise<Sample>
  stop(): Promise<void>
}

export async function startClient(name: string): Promise<Contender> {
  const processes = Array.from({ length: PROCESSES }, () => startContender(WORKER, name))
  const stop = async () => void (await Promise.all(processes.map((each) => each.stop())))
  try {
    await Promise.all(processes.map((each) => each.ask({ calls: 0 } satisfies LoadTask)))
  } catch (error) {
    await stop()
    throw error
  }
  return { name, measure: (scenario) => measure(processes, scenario), stop }
}

/** Makes all processes of a client call a new server, whose limit they share. */
async function measure(
  processes: readonly ContenderProcess[],
  { limit, windowMs, algorithm }: Scenario,
): Promise<Sample> {
  const api = await startLimitedApi({ limit, window: windowMs, algorithm })
  const task: Task = { url: `${api.url}/`, limit, windowMs, calls: CALLS, workers: WORKERS }
  try {
    const results = await Promise.all(processes.map((each) => each.ask<ProcessResult>(task)))
    const walls = results.map(({ wallMs }) => wallMs)
    return {
      sent: api.admitted + api.refused,
      refused: api.refused,
      failures: results.flatMap(({ failures }) => failures),
      wallMs: Math.max(...walls),
      firstMs: Math.min(...walls),
      p99Ms: percentile(
        results.flatMap(({ latenciesMs }) => latenciesMs),
        0.99,
      ),
    }
  } finally {
    await api.close()
  }
}
