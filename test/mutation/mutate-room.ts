import { availableParallelism } from "node:os"
import { relative } from "node:path"
import { Stryker } from "@stryker-mutator/core"
import { ROOMS } from "./rooms.ts"

type Results = Awaited<ReturnType<Stryker["runMutationTest"]>>
type Result = Results[number]

/**
 * Mutates a room of the core, one change at a time, and runs its quick tests on each, and its thorough ones on what these have left.
 * Prints every mutant that no test has noticed, and the score of each file; reports/mutation has pages that show them in their
 * places. Yields whether none was left.
 *
 * `only` are files of the room, or lines of them, as in "algorithms/share.ts:20-40"; all of it where there are none.
 */
export async function mutateRoom(name: string, only: readonly string[]): Promise<boolean> {
  const room = ROOMS[name]
  if (room === undefined) throw new RangeError(`no room ${name}: there are ${Object.keys(ROOMS).join(", ")}`)
  process.env.MUTATION_ROOM = name
  const mutate = only.length === 0 ? room.mutate : only.map((path) => `packages/core/src/${path}`)
  const results = await run(name, mutate)
  let left = results.filter(isLeft)
  if (left.length > 0) {
    process.env.MUTATION_THOROUGH = "1"
    const again = await run(`${name}-thorough`, [...new Set(left.map(placeOf))])
    const stillLeft = new Set(again.filter(isLeft).map(textOf))
    left = left.filter((result) => stillLeft.has(textOf(result)))
  }
  printScores(results, left)
  return left.length === 0
}

async function run(report: string, mutate: readonly string[]): Promise<Results> {
  return await new Stryker({
    mutate: [...mutate],
    testRunner: "vitest",
    plugins: [import.meta.resolve("@stryker-mutator/vitest-runner"), import.meta.resolve("./survivors.mjs")],
    vitest: { configFile: "test/mutation/vitest.config.ts", related: false },
    coverageAnalysis: "perTest",
    concurrency: availableParallelism(),
    // What runs once, when a file is loaded, would meet every test: tables and constants, which no test could miss.
    ignoreStatic: true,
    // A mutant that hangs is waited for so long, and as long as its tests take beyond that.
    timeoutMS: 5_000,
    timeoutFactor: 1.5,
    dryRunTimeoutMinutes: 20,
    tempDirName: ".mutation",
    cleanTempDir: "always",
    ignorePatterns: ["/bench", "/docs", "/examples", "/reports", "dist", ".turbo", "coverage"],
    disableTypeChecks: false,
    reporters: ["survivors", "html", "json", "progress-append-only"],
    htmlReporter: { fileName: `reports/mutation/${report}.html` },
    jsonReporter: { fileName: `reports/mutation/${report}.json` },
    allowConsoleColors: false,
  }).runMutationTest()
}

function isLeft({ status }: Result): boolean {
  return status === "Survived" || status === "NoCoverage"
}

/** As Stryker takes it: it tells columns from 1, and takes them from 0. */
function placeOf({ fileName, location: { start, end } }: Result): string {
  return `${fileName}:${start.line}:${start.column - 1}-${end.line}:${end.column - 1}`
}

function textOf(result: Result): string {
  return `${placeOf(result)} ${result.mutatorName} -> ${result.replacement ?? ""}`
}

function printScores(results: Results, left: Results): void {
  const count = (some: Results, file: string) => some.filter(({ fileName }) => fileName === file).length
  const valid = results.filter(({ status }) => status !== "Ignored" && status !== "CompileError")
  for (const file of [...new Set(valid.map(({ fileName }) => fileName))].toSorted()) {
    const [all, missed] = [count(valid, file), count(left, file)]
    console.log(`${percent(all - missed, all)} ${all - missed}/${all} ${relative(process.cwd(), file)}`)
  }
  console.log(
    `${percent(valid.length - left.length, valid.length)} of ${valid.length} mutants were noticed; left:`,
  )
  for (const result of left) console.log(`  ${relative(process.cwd(), textOf(result))}`)
}

function percent(part: number, whole: number): string {
  return `${(Math.floor((1_000 * part) / whole) / 10).toFixed(1)} %`
}
