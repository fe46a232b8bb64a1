import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { statSync, writeFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { type Hits, type Line, mostMsWithMutant, type RunTask, readLog } from "./task.ts"

export interface Tried {
  readonly noticed: ReadonlySet<string>
  readonly putOff: Hits
}

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

  /**
   * Tries these mutants on these tests, and yields those that some test has noticed; and what was put off, of tests that are red
   * without a mutant, too, once they have noticed one: the process has to be begun anew for each.
   */
  async tryAll(all: Hits, putsOff: boolean): Promise<Tried> {
    const noticed = new Set<string>()
    const putOff: Record<string, Hits[string]> = {}
    let trials = all
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
      if (putsOff && latest.kind === "noticed" && rest[latest.test] !== undefined) {
        putOff[latest.test] = rest[latest.test] as Hits[string]
        delete rest[latest.test]
      }
      // Some are not run at all, whatever they have been seen to reach.
      if (countOf(rest) === countOf(trials)) break
      trials = rest
    }
    return { noticed, putOff }
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
async function ended(vitest: ChildProcess, task: RunTask): Promise<void> {
  // Or there is nothing to wait for, and that is told.
  await once(vitest, "spawn")
  const end = (): void => void process.kill(-(vitest.pid as number), "SIGKILL")
  process.once("exit", end)
  let isOver = false
  vitest.once("exit", () => {
    isOver = true
    process.off("exit", end)
  })
  let [size, since, mostMs] = [0, performance.now(), patienceMs(task, undefined)]
  while (!isOver) {
    await sleep(100)
    const now = statSync(task.log).size
    if (now !== size)
      [size, since, mostMs] = [now, performance.now(), patienceMs(task, readLog(task.log).at(-1))]
    if (performance.now() - since >= mostMs && !isOver) end()
  }
}

/** For how long nothing may happen after this line. */
function patienceMs(task: RunTask, latest: Line | undefined): number {
  // All has been seen: what some test has left open is waited for no longer.
  if (latest?.kind === "loaded") return 10_000
  // Before the first line files are loaded, and a run that only looks may be silent for long.
  if (task.trials === undefined || latest === undefined) return 1_800_000
  // What waits is ended by the runner itself: this is for what computes for ever.
  if (latest.kind === "trying") return mostMsWithMutant(task, latest.test) + 5_000
  // A test, and the hook after it.
  return 2 * task.timeoutMs + 5_000
}

function countOf(trials: Hits): number {
  return Object.values(trials).reduce((count, hits) => count + Object.keys(hits).length, 0)
}

/** Without what has been noticed, tests that have tried all, and what was tried in the one that was interrupted. */
function stillToTry(
  trials: Hits,
  lines: readonly Line[],
  noticed: ReadonlySet<string>,
): Record<string, Hits[string]> {
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
