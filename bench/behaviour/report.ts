import { printTable } from "../report/table.ts"
import type { Drill, Finding } from "./drill.ts"

/** The finding of one drill for one contender. */
export interface Entry {
  readonly contender: string
  readonly finding: Finding
}

const GOOD = "good"
const NOT_GOOD = "-"

/** Prints the question and the expectation of a drill, and the finding for each contender. */
export function printDrill({ name, asks, wants }: Drill, entries: readonly Entry[]): void {
  const width = Math.max(...entries.map(({ contender }) => contender.length))
  console.log(`\n${name}\n  asked:  ${asks}\n  wanted: ${wants}`)
  for (const { contender, finding } of entries) {
    const mark = (finding.isGood ? GOOD : NOT_GOOD).padEnd(GOOD.length)
    console.log(`  ${mark}  ${contender.padEnd(width)}  ${finding.seen}`)
  }
}

/** Prints the verdicts, with a row for each contender and a column for each drill. */
export function printSummary(
  contenders: readonly string[],
  results: readonly { readonly drill: Drill; readonly entries: readonly Entry[] }[],
): void {
  printTable(
    `Verdicts ("${GOOD}": behaves as wanted; "${NOT_GOOD}": does not, see the finding above)`,
    ["", ...results.map(({ drill }) => drill.name)],
    contenders.map((contender) => [
      contender,
      ...results.map(({ entries }) => {
        const isGood = entries.find((entry) => entry.contender === contender)?.finding.isGood
        return isGood ? GOOD : NOT_GOOD
      }),
    ]),
  )
}
