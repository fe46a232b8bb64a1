import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { forked } from "./instances.ts"
import { type History, monotonicMs, type Work } from "./permit-history.ts"
import type { Order, Report, Works } from "./permit-process.ts"

const PROCESS = fileURLToPath(new URL("./permit-process.ts", import.meta.url))

/** Starts processes that run works. `killInstances` kills them. */
export async function startWorkers(count: number): Promise<readonly Worker[]> {
  const workers = Array.from({ length: count }, (_, nth) => new Worker(nth))
  await Promise.all(workers.map(({ ready }) => ready))
  return workers
}

/** A process that runs works and reports them to a history. */
export class Worker {
  readonly nth: number
  readonly ready: Promise<unknown>
  readonly #child: ChildProcess = forked(PROCESS, {}, {})
  #history: History | undefined
  readonly #works = new Map<number, Work>()
  #finished: ((refused: Readonly<Record<string, number>>) => void) | undefined
  #isRunning = false

  constructor(nth: number) {
    this.nth = nth
    this.ready = once(this.#child, "message")
    this.#child.on("message", (report: Report) => this.#hear(report))
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Begins to run works, which are reported to the history. */
  run(history: History, works: Works): void {
    this.#history = history
    this.#isRunning = true
    this.#send({ do: "run", works })
  }

  /** Ends all works. Resolves with the number of refusals by their reason. */
  async finish(): Promise<Readonly<Record<string, number>>> {
    if (!this.#isRunning) return {}
    this.#isRunning = false
    return new Promise((resolve, reject) => {
      this.#finished = resolve
      this.#child.once("exit", () => reject(new Error("the process has exited")))
      this.#send({ do: "finish" })
    })
  }

  freeze(): void {
    this.#child.kill("SIGSTOP")
  }

  /** Returns the time. */
  thaw(): number {
    this.#child.kill("SIGCONT")
    return monotonicMs()
  }

  /** Kills the process (SIGKILL). Resolves once it is gone and all its reports have arrived. */
  async kill(): Promise<void> {
    const gone = once(this.#child, "exit").then(() => monotonicMs())
    const closed = once(this.#child, "disconnect")
    this.#child.kill("SIGKILL")
    await closed
    this.#history?.died(this.nth, await gone)
  }

  #send(order: Order): void {
    this.#child.send(order)
  }

  #hear(report: Report): void {
    const history = this.#history
    if (history === undefined) return
    if (report.told === "begun") {
      const { id, user, atMs, untilMs } = report
      const [endedMs, releasedMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
      const work = { worker: this.nth, user, beganMs: atMs, untilMs, endedMs, releasedMs, wasKilled: false }
      this.#works.set(id, work)
      history.works.push(work)
    } else if (report.told === "ended") {
      const work = this.#works.get(report.id)
      if (work !== undefined) work.endedMs = report.atMs
    } else if (report.told === "released") {
      const work = this.#works.get(report.id)
      if (work !== undefined) work.releasedMs = report.atMs
      this.#works.delete(report.id)
    } else if (report.told === "away") history.absent(this.nth, report)
    else if (report.told === "lost")
      history.lost.set(this.nth, (history.lost.get(this.nth) ?? 0) + report.permits)
    else if (report.told === "finished") this.#finished?.(report.refused)
  }
}
