import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { afterAll } from "vitest"
import type { Order, Ran, Told } from "./jobs-process.ts"

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url))
const JOBS = new URL("./jobs-process.ts", import.meta.url)

/** A program that runs in its own process. */
export interface Started {
  readonly child: ChildProcess
  /** Rejects when the process has ended. */
  readonly ended: Promise<never>
}

/**
 * Starts a program in its own process, with the built packages. Resolves when the program has sent its first message.
 * The process ends with the tests of the file.
 */
export async function start(program: URL, ...args: readonly string[]): Promise<Started> {
  const env = { ...process.env, TSX_TSCONFIG_PATH: `${ROOT}/tsconfig.base.json` }
  const child = fork(program, args, { execArgv: ["--import", "tsx"], env })
  afterAll(() => void child.kill("SIGKILL"))
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`${program.pathname} ended with ${code}`)
  })
  ended.catch(() => undefined)
  await Promise.race([once(child, "message"), ended])
  return { child, ended }
}

export interface TwoProcesses {
  /**
   * Runs the jobs in both processes at the same time. `whenWaiting` runs when all jobs of both processes wait. Resolves
   * to the jobs of each process, in order of their starts.
   */
  run(order: Order, whenWaiting?: () => Promise<unknown>): Promise<readonly (readonly Ran[])[]>
}

/** Starts two processes that run jobs and share a Redis. */
export async function twoProcesses(port: number): Promise<TwoProcesses> {
  const both = await Promise.all([1, 2].map(() => start(JOBS, `${port}`)))
  return {
    async run(order, whenWaiting) {
      const reports = both.map(reportsOf)
      for (const { child } of both) child.send(order)
      if (whenWaiting !== undefined) {
        await Promise.all(reports.map(({ waiting }) => waiting))
        await whenWaiting()
      }
      return Promise.all(reports.map(({ ran }) => ran))
    },
  }
}

/** Returns the reports of a process on its next order: that all jobs wait, and which jobs ran. */
function reportsOf({ child, ended }: Started): { waiting: Promise<void>; ran: Promise<readonly Ran[]> } {
  let isWaiting = (): void => {}
  let haveRun = (_ran: readonly Ran[]): void => {}
  const waiting = new Promise<void>((resolve) => {
    isWaiting = resolve
  })
  const ran = new Promise<readonly Ran[]>((resolve) => {
    haveRun = resolve
  })
  child.removeAllListeners("message")
  child.on("message", (told: Told) => (typeof told === "string" ? isWaiting() : haveRun(told)))
  return { waiting: Promise.race([waiting, ended]), ran: Promise.race([ran, ended]) }
}

/** Returns the most jobs that ran at the same time. */
export function mostAtOnce(ran: readonly Ran[]): number {
  return Math.max(
    ...ran.map(
      ({ startMs }) => ran.filter((other) => other.startMs <= startMs && startMs < other.endMs).length,
    ),
  )
}
