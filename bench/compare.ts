import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { Build } from "./compare/build.ts"
import { type CompareCommand, readCompareCommand } from "./compare/command-line.ts"
import { type Figures, measureJob } from "./compare/measure.ts"
import { JOBS } from "./compare/measurements.ts"
import { compareFigures, printComparison } from "./compare/report.ts"
import { Worktree } from "./compare/worktree.ts"
import { startServer } from "./redis/server.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { rotated } from "./report/statistics.ts"

// Compares the CPU time of this tree's build with that of another commit's. bench/README.md says how to read it.

const ROOT = fileURLToPath(new URL("..", import.meta.url))

const { command, worktree } = prepare()
const redis = await startServer()
try {
  const machine = describeMachine()
  printMachine(machine)
  console.log(`Building ${worktree.commit} in ${worktree.root}`)
  await worktree.build()
  const before: Build = { name: worktree.commit, root: worktree.root }
  const now: Build = { name: "this tree", root: ROOT }

  const jobs = JOBS.filter(({ group }) => command.groups.includes(group))
  const rounds: Map<Build, Figures>[] = []
  for (let round = 0; round < command.rounds; round++) {
    rounds.push(await measureRound(round))
    console.log(`Round ${round + 1} of ${command.rounds}`)
  }
  const comparison = compareFigures(
    rounds.map((figures) => ({ before: figures.get(before) as Figures, now: figures.get(now) as Figures })),
  )
  printComparison(comparison, before.name)
  if (command.json !== undefined) {
    const all = { machine, commit: worktree.commit, rounds: command.rounds, comparison }
    writeFileSync(command.json, `${JSON.stringify(all, null, 2)}\n`)
  }

  /** The builds take turns with each job, and the first one of a round is the last one of the next. */
  async function measureRound(round: number): Promise<Map<Build, Figures>> {
    const figures = new Map<Build, Map<string, number>>([
      [before, new Map()],
      [now, new Map()],
    ])
    for (const job of jobs) {
      for (const build of rotated([before, now], round)) {
        for (const [name, value] of await measureJob(job, build, redis)) figures.get(build)?.set(name, value)
      }
    }
    return figures
  }
} finally {
  await redis.stop()
  await worktree.remove()
}

/** Ends the process with one line when the command line is wrong. */
function prepare(): { readonly command: CompareCommand; readonly worktree: Worktree } {
  try {
    const command = readCompareCommand(process.argv.slice(2))
    return { command, worktree: new Worktree(ROOT, command.commit) }
  } catch (error) {
    console.error((error as Error).message)
    process.exit(2)
  }
}
