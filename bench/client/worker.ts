import { answerTasks } from "../contender-process.ts"
import { type Allowed, CLIENTS } from "./contenders.ts"

// A process that sends calls with one client.

/** The first task of a process, which responds when its client library is loaded. */
export type LoadTask = { readonly calls: 0 }

/** Calls to send. */
export interface Task extends Allowed {
  readonly url: string
  readonly calls: number
  /** The number of calls that are sent or waiting at the same time. */
  readonly workers: number
}

/** The measurements of a process. */
export interface ProcessResult {
  /** From the first call to the last response. */
  readonly wallMs: number
  /** The duration of each call, with its waits and retries. */
  readonly latenciesMs: readonly number[]
  /** The reason of each failed call. */
  readonly failures: readonly string[]
}

const [name = ""] = process.argv.slice(2)
const load = CLIENTS[name]
if (load === undefined) throw new Error(`"${name}" is not a client of this benchmark`)
const create = await load()

answerTasks<Task | LoadTask>((task) => ("url" in task ? run(task) : undefined))

async function run({ url, calls, workers, ...allowed }: Task): Promise<ProcessResult> {
  const client = create(allowed)
  const latenciesMs: number[] = []
  const failures: string[] = []
  let started = 0
  const startedAt = performance.now()
  async function work(): Promise<void> {
    while (started++ < calls) {
      const sentAt = performance.now()
      try {
        const status = await client.send(url)
        if (status !== 200) failures.push(`status ${status}`)
      } catch (error) {
        failures.push(String(error))
      }
      latenciesMs.push(performance.now() - sentAt)
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
  const wallMs = performance.now() - startedAt
  client.close()
  return { wallMs, latenciesMs, failures }
}
