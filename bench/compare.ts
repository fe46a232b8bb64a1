import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { type CompareCommand, readCompareCommand } from "./compare/command-line.ts"
import { measureJob } from "./compare/measure.ts"
import { JOBS, type Job } from "./compare/measurements.ts"
import { compareFigures, printComparison, type Round } from "./compare/report.ts"
import { Worktree } from "./compare/worktree.ts"
import { startServer } from "./redis/server.ts"
import { describeMachine, printMachine } from "./report/machine.ts"

// Compares the CPU time of this tree's build with the build of another commit. bench/README.md explains the output.

const ROOT = fileURLToPath(new URL("..", import.meta.url))

const { command, worktree } = prepare()
const redis = await startServer()
try {
  const machine = describeMachine()
  printMachine(machine)
  console.log(`Building ${worktree.commit} in ${worktree.root}`)
  await worktree.build()
  const jobs = JOBS.filter(({ group }) => command.groups.includes(group))
  const rounds: Round[] = []
  for (let round = 0; round < command.rounds; round++) {
    rounds.push(await measureRound(jobs))
    console.log(`Round ${round + 1} of ${command.rounds}`)
  }
  const comparison = compareFigures(rounds)
  printComparison(comparison, worktree.commit)
  if (command.json !== undefined) {
    const all = { machine, commit: worktree.commit, rounds: command.rounds, comparison }
    writeFileSync(command.json, `${JSON.stringify(all, null, 2)}\n`)
  }
} finally {
  await redis.stop()
  await worktree.remove()
}

async function measureRound(jobs: readonly Job[]): Promise<Round> {
  const before = new Map<string, number>()
  const now = new Map<string, number>()
  for (const job of jobs) {
    const [first, second] = await measureJob(job, [worktree.root, ROOT], redis)
    for (const [name, us] of first ?? []) before.set(name, us)
    for (const [name, us] of second ?? []) now.set(name, us)
  }
  return { before, now }
}

/** Reads the command line and creates the worktree. Prints one line and ends the process if either fails. */
function prepare(): { readonly command: CompareCommand; readonly worktree: Worktree } {
  try {
    const command = readCompareCommand(process.argv.slice(2))
    return { command, worktree: new Worktree(ROOT, command.commit) }
  } catch (error) {
    console.error((error as Error).message)
    process.exit(2)
  }
}
