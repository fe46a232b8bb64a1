import { appendFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { type RunnerTestCase, TestRunner } from "vitest"
import { type Line, mostMsWithMutant, type RunTask, readTask } from "./task.ts"

/** The variables that instrumented files read and write. Stryker chooses the names. */
interface Switches {
  activeMutant?: string | undefined
  currentTestId?: string | undefined
  hitCount?: number
  hitLimit?: number
  readonly mutantCoverage: {
    static: Record<string, number>
    perTest: Record<string, Record<string, number>>
  }
}

/** If a mutant is reached this many times more often than before, the test does not end. */
const MOST_HITS = 100

const switches: Switches = { mutantCoverage: { static: {}, perTest: {} } }
Object.assign(globalThis, { __stryker__: switches })

/**
 * Runs each test repeatedly in one process, each time with another active mutant. Modules are not loaded again, which
 * would take most of the time. A test must first pass twice without a mutant, because not every test can run
 * repeatedly. It must also pass again after each mutant that it has noticed.
 */
export default class SwitchingRunner extends TestRunner {
  readonly #task: RunTask = readTask()
  readonly #noticed = new Set<string>()
  /**
   * True if a test has passed without a mutant since the last failure, so that no mutant can have left state behind.
   */
  #isClean = true
  /** The mutants that the current test has not tried yet, and the active mutant, which may be undefined. */
  #left: string[] = []
  #active: string | undefined
  #greens = 0
  #startedMs = 0

  override async onBeforeRunTask(test: RunnerTestCase): Promise<void> {
    await super.onBeforeRunTask(test)
    const { trials } = this.#task
    if (trials === undefined || test.mode !== "run") return
    const reached = Object.keys(trials[test.id] ?? {})
    // Run tests one at a time. With concurrent tests, it would be unclear which test noticed the mutant.
    this.#left = test.concurrent === true ? [] : reached.filter((id) => !this.#noticed.has(id))
    this.#active = undefined
    this.#greens = 0
    if (this.#left.length === 0) {
      this.#tell({ kind: "tried", test: test.id })
      test.mode = "skip"
    }
    // More than enough. The test ends when all mutants have been tried.
    test.repeats = 2 * this.#left.length + 2
  }

  override onBeforeTryTask(test: RunnerTestCase): void {
    super.onBeforeTryTask(test)
    if (this.#task.trials === undefined) {
      switches.currentTestId = test.id
      this.#startedMs = performance.now()
      return
    }
    if (test.result !== undefined) {
      test.result.state = "run"
      test.result.errors = undefined as never
    }
    const mutant = this.#active
    if (mutant === undefined) return
    this.#tell({ kind: "trying", mutant, test: test.id })
    switches.hitCount = 0
    switches.hitLimit = MOST_HITS * (this.#task.trials[test.id]?.[mutant] ?? 1)
    switches.activeMutant = mutant
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const run = async () => TestRunner.getTestFn(test)()
    if (this.#active === undefined) return run()
    const patience = new AbortController()
    const mostMs = mostMsWithMutant(this.#task, test.id)
    const late = sleep(mostMs, undefined, patience).then(() => {
      throw new Error(`the test did not end within ${mostMs} ms`)
    })
    try {
      await Promise.race([run(), late])
    } finally {
      late.catch(() => {})
      patience.abort()
    }
  }

  onAfterRetryTask(test: RunnerTestCase): void {
    switches.activeMutant = undefined
    switches.currentTestId = undefined
    const { result } = test
    if (this.#task.trials === undefined) this.#tellReached(test)
    if (this.#task.trials === undefined || result === undefined) return
    const isRed = result.state === "fail"
    if (this.#active === undefined) this.#control(test, isRed)
    else if (isRed) {
      this.#noticed.add(this.#active)
      this.#isClean = false
      this.#tell({
        kind: "noticed",
        mutant: this.#active,
        test: test.id,
        by: `${test.fullName}: ${result.errors?.[0]?.message?.split("\n", 1)[0]}`,
      })
    }
    this.#active = this.#isClean && this.#greens > 1 ? this.#left.shift() : undefined
    if (this.#active !== undefined || this.#left.length > 0) return
    this.#tell({ kind: "tried", test: test.id })
    // Skip the remaining repeats of the test.
    Object.assign(result, { pending: true })
  }

  #control(test: RunnerTestCase, isRed: boolean): void {
    if (!isRed) {
      this.#isClean = true
      this.#greens += 1
      return
    }
    // Exit, because the run is restarted and continues from here.
    if (!this.#isClean) process.kill(process.pid, "SIGKILL")
    this.#tell({ kind: "spoiled", test: test.fullName })
    this.#left = []
  }

  override onAfterRunFiles(): void {
    super.onAfterRunFiles()
    if (this.#task.trials !== undefined) return
    this.#tell({ kind: "loaded", mutants: Object.keys(switches.mutantCoverage.static) })
  }

  #tellReached(test: RunnerTestCase): void {
    const hits = switches.mutantCoverage.perTest[test.id]
    if (hits === undefined) return
    const tookMs = performance.now() - this.#startedMs
    this.#tell({ kind: "reached", test: test.id, file: test.file.name, tookMs, hits })
  }

  #tell(line: Line): void {
    appendFileSync(this.#task.log, `${JSON.stringify(line)}\n`)
  }
}
