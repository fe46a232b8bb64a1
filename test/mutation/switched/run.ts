import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { statSync, writeFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { type Hits, type Line, mostMsWithMutant, type RunTask, readLog } from "./task.ts"

export interface Tried {
  readonly noticed: ReadonlySet<string>
  readonly putOff: Hits
}

/** A run of the tests. The run is restarted after a mutant has ended the run or has left state behind. */
export class Run {
  readonly #task: RunTask
  readonly #path: string

  constructor(task: RunTask, path: string) {
    this.#task = task
    this.#path = path
  }

  /** Runs each test once and returns the mutants that the test reaches. */
  async look(): Promise<readonly Line[]> {
    await this.#begin(this.#task)
    return readLog(this.#task.log)
  }

  /**
   * Tries these mutants on these tests. Returns the mutants that some test noticed, and the postponed trials. With
   * `putsOff`, trials are postponed if their test noticed a mutant and then fails without a mutant. Each postponed
   * trial needs a new process.
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
      // The mutant that was active hangs or uses all memory.
      if (latest.kind === "trying") noticed.add(latest.mutant)
      const rest = stillToTry(trials, lines, noticed)
      if (putsOff && latest.kind === "noticed" && rest[latest.test] !== undefined) {
        putOff[latest.test] = rest[latest.test] as Hits[string]
        delete rest[latest.test]
      }
      // Stop if no trial has ended, because some tests no longer run at all, although they reached mutants before.
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
      // Start the process in a separate process group, so that its workers can be ended together with it.
      detached: true,
    })
    await ended(vitest, task)
  }
}

/** Resolves when the run has ended. Ends the run if it logs nothing for too long. */
async function ended(vitest: ChildProcess, task: RunTask): Promise<void> {
  // Rejects if the process cannot start.
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

/** Returns how long the run may be silent after this line. */
function patienceMs(task: RunTask, latest: Line | undefined): number {
  // The tests of a file have ended, and loading the next file takes long on a busy machine. After the last file, do
  // not wait for handles that tests have left open.
  if (latest?.kind === "loaded") return 60_000
  // Files are loaded before the first line. A run that only finds reached mutants may also be silent for long.
  if (task.trials === undefined || latest === undefined) return 1_800_000
  // The runner ends tests that wait forever, so this limit is for tests that compute forever.
  if (latest.kind === "trying") return mostMsWithMutant(task, latest.test) + 5_000
  // Allow time for a test and for the hook after it.
  return 2 * task.timeoutMs + 5_000
}

function countOf(trials: Hits): number {
  return Object.values(trials).reduce((count, hits) => count + Object.keys(hits).length, 0)
}

/**
 * Returns the remaining trials. Leaves out noticed mutants, finished tests, and mutants that an interrupted test has
 * tried.
 */
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
