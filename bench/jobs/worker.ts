import { setImmediate } from "node:timers/promises"
import { answerTasks } from "../contender-process.ts"
import { CONTENDERS, type Run } from "./contenders.ts"

export interface Round {
  /** The most jobs that run at a time. */
  readonly concurrent: number
  /** Number of jobs that are added together. The next jobs are added when all of them have ended. */
  readonly together: number
  readonly jobs: number
}

const runs = new Map<number, Run>()

/** Returns the CPU nanoseconds per job. A job lasts for one turn of the event loop. */
answerTasks<Round>(async ({ concurrent, together, jobs }): Promise<number> => {
  const run = runs.get(concurrent) ?? setUp(concurrent)
  let ended = 0
  const work = async () => {
    await setImmediate()
    return ++ended
  }
  const before = process.cpuUsage()
  for (let added = 0; added < jobs; added += together) {
    const all: Promise<number>[] = []
    for (let number = 0; number < together; number++) all.push(run(work))
    await Promise.all(all)
  }
  const { user, system } = process.cpuUsage(before)
  if (ended !== jobs) throw new Error(`${ended} of ${jobs} jobs have run`)
  return ((user + system) * 1_000) / jobs
})

function setUp(concurrent: number): Run {
  const create = CONTENDERS[process.argv[2] ?? ""]
  if (create === undefined) throw new Error(`unknown contender: ${process.argv[2]}`)
  const run = create(concurrent)
  runs.set(concurrent, run)
  return run
}
