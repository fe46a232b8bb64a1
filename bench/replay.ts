import { writeFileSync } from "node:fs"
import { readCommandLine } from "./command-line.ts"
import { generateLogs } from "./replay/logs.ts"
import { runCommand, runCommandOn, runSplit, type Usage } from "./replay/run-command.ts"
import { describeMachine, printMachine } from "./report/machine.ts"
import { median, rotated } from "./report/statistics.ts"
import { printTable, printWanted } from "./report/table.ts"

// Measures `sluice rules replay` and `suggest` on generated logs. Each measurement covers a whole process, from start
// to end. bench/README.md explains the output.

const MOST_MB = 250

const { quick, json, only } = readCommandLine()
const lines = quick ? 200_000 : 2_000_000
const pinoLines = lines / 4
const rounds = quick ? 1 : 5

const machine = describeMachine()
printMachine(machine)
const logs = await generateLogs(lines, pinoLines)
const { combined, pino, oneRule, threeRules } = logs
const replay = (rules: string, log: string) => () => runCommand("rules", "replay", rules, log)

interface Row {
  readonly name: string
  readonly lines: number
  /** The wanted number of lines per second of CPU time. Absent for a row that is only a reference for other rows. */
  readonly wanted?: number
  readonly mostMB?: number
  readonly run: () => Promise<Usage>
}
const rows: readonly Row[] = [
  { name: "combined: read and split only", lines, run: () => runSplit(combined) },
  {
    name: "combined: replay, one rule",
    lines,
    wanted: 300_000,
    mostMB: MOST_MB,
    run: replay(oneRule, combined),
  },
  {
    name: "combined: replay, three rules",
    lines,
    wanted: 300_000,
    mostMB: MOST_MB,
    run: replay(threeRules, combined),
  },
  {
    name: "combined: suggest, three windows, first pass",
    lines,
    wanted: 300_000,
    // Standard input is read only once.
    run: () => runCommandOn(combined, "rules", "suggest", "-"),
  },
  { name: "pino: read and split only", lines: pinoLines, run: () => runSplit(pino) },
  { name: "pino: replay, one rule", lines: pinoLines, wanted: 200_000, run: replay(oneRule, pino) },
].filter(({ name }) => name.includes(only))

const usages = new Map<string, Usage[]>(rows.map(({ name }) => [name, []]))
try {
  for (let round = 0; round < rounds; round++)
    for (const { name, run } of rotated(rows, round)) usages.get(name)?.push(await run())
} finally {
  logs.remove()
}

const results = rows.map((row) => {
  const used = usages.get(row.name) ?? []
  const cpuUs = median(used.map((each) => each.cpuUs))
  return {
    ...row,
    usPerLine: cpuUs / row.lines,
    linesPerSecond: (1e6 * row.lines) / cpuUs,
    megabytes: median(used.map(({ mostBytes }) => mostBytes / 1e6)),
  }
})
printTable(
  `Logs of ${lines} combined and ${pinoLines} pino lines: CPU time with start and end, medians of ${rounds} rounds in turn`,
  ["", "us a line", "lines a CPU second", "most MB"],
  results.map(({ name, usPerLine, linesPerSecond, megabytes }) => [
    name,
    usPerLine.toFixed(2),
    Math.round(linesPerSecond).toLocaleString("en-US"),
    megabytes.toFixed(0),
  ]),
)
console.log()
for (const { name, wanted, linesPerSecond, megabytes, mostMB } of results) {
  if (wanted === undefined) continue
  printWanted(
    `${name}, thousand lines a second`,
    linesPerSecond / 1e3,
    linesPerSecond >= wanted,
    `at least ${wanted / 1e3}`,
  )
  if (mostMB !== undefined) printWanted(`${name}, MB`, megabytes, megabytes <= mostMB, `at most ${mostMB}`)
}
if (json !== undefined)
  writeFileSync(json, `${JSON.stringify({ machine, lines, usages: Object.fromEntries(usages) }, null, 2)}\n`)
