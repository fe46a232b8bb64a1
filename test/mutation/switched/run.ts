import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { statSync, writeFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { type Hits, type Line, type RunTask, readLog } from "./task.ts"

/** A run of the tests, begun anew where a mutant has ended it or has left something behind. */
export class Run {
  readonly #task: RunTask
  readonly #path: string

  constructor(task: RunTask, path: string) {
    this.#task = task
    this.#path = path
  }

  /** Runs each test once, and yields what it reaches. */
  async look(): Promise<readonly Line[]> {
    await this.#begin(this.#task)
    return readLog(this.#task.log)
  }

  /** Tries all mutants, and yields those that some test has noticed. */
  async tryAll(): Promise<ReadonlySet<string>> {
    const noticed = new Set<string>()
    let trials = this.#task.trials ?? {}
    while (Object.keys(trials).length > 0) {
      await this.#begin({ ...this.#task, trials })
      const lines = readLog(this.#task.log)
      const latest = lines.at(-1)
      if (latest === undefined) throw new Error("the tests did not begin: try them without mutants")
      for (const line of lines) {
        if (line.kind === "noticed") noticed.add(line.mutant)
        if (line.kind === "spoiled") console.log(`Red without any mutant: ${line.test}`)
      }
      // It hangs, or takes all memory.
      if (latest.kind === "trying") noticed.add(latest.mutant)
      const rest = stillToTry(trials, lines, noticed)
      // Some are not run at all, whatever they have been seen to reach.
      if (countOf(rest) === countOf(trials)) break
      trials = rest
    }
    return noticed
  }

  async #begin(task: RunTask): Promise<void> {
    writeFileSync(task.log, "")
    writeFileSync(this.#path, JSON.stringify(task))
    const config = "test/mutation/switched/vitest.config.ts"
    const vitest = spawn("node_modules/.bin/vitest", ["run", "--config", config], {
      env: { ...process.env, MUTATION_TASK: this.#path, NODE_ENV: "test", NODE_NO_WARNINGS: "1" },
      stdio: ["ignore", "ignore", "inherit"],
      // Its workers are ended with it.
      detached: true,
    })
    await ended(vitest, task)
  }
}

/** Resolves when the run is over, and ends it when nothing happens any more. */
async function ended(vitest: ChildProcess, { log, timeoutMs, trials }: RunTask): Promise<void> {
  // Or there is nothing to wait for, and that is told.
  await once(vitest, "spawn")
  // A test, and the hook after it. Before the first, files are loaded; and a run that only looks has no lines but the last.
  const patienceMs = 2 * timeoutMs + 5_000
  const mostMs = (size: number) => (trials === undefined || size === 0 ? 1_800_000 : patienceMs)
  const end = (): void => void process.kill(-(vitest.pid as number), "SIGKILL")
  process.once("exit", end)
  let isOver = false
  vitest.once("exit", () => {
    isOver = true
    process.off("exit", end)
  })
  let [size, since] = [0, performance.now()]
  while (!isOver) {
    await sleep(100)
    const now = statSync(log).size
    if (now !== size) [size, since] = [now, performance.now()]
    if (performance.now() - since >= mostMs(now) && !isOver) end()
  }
}

function countOf(trials: Hits): number {
  return Object.values(trials).reduce((count, hits) => count + Object.keys(hits).length, 0)
}

/** Without what has been noticed, tests that have tried all, and what was tried in the one that was interrupted. */
function stillToTry(trials: Hits, lines: readonly Line[], noticed: ReadonlySet<string>): Hits {
  const done = new Set<string>()
  const tried = new Map<string, Set<string>>()
  for (const line of lines) {
    if (line.kind === "tried") done.add(line.test)
    if (line.kind !== "trying") continue
    const mutants = tried.get(line.test) ?? new Set()
    tried.set(line.test, mutants.add(line.mutant))
  }
  const left = Object.entries(trials).filter(([test]) => !done.has(test))
  const rest = left.map(
    ([test, hits]) =>
      [
        test,
        Object.fromEntries(
          Object.entries(hits).filter(([id]) => !noticed.has(id) && tried.get(test)?.has(id) !== true),
        ),
      ] as const,
  )
  return Object.fromEntries(rest.filter(([, hits]) => Object.keys(hits).length > 0))
}
