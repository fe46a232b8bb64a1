import { printTable } from "../report/table.ts"
import type { Drill, Finding } from "./drill.ts"

/** What one contender did in one drill. */
export interface Entry {
  readonly contender: string
  readonly finding: Finding
}

const GOOD = "good"
const NOT_GOOD = "-"

/** One drill: what is asked, what is wanted of it, and what each of the contenders did. */
export function printDrill({ name, asks, wants }: Drill, entries: readonly Entry[]): void {
  const width = Math.max(...entries.map(({ contender }) => contender.length))
  console.log(`\n${name}\n  asked:  ${asks}\n  wanted: ${wants}`)
  for (const { contender, finding } of entries) {
    const mark = (finding.isGood ? GOOD : NOT_GOOD).padEnd(GOOD.length)
    console.log(`  ${mark}  ${contender.padEnd(width)}  ${finding.seen}`)
  }
}

/** Who does what is wanted: a row for each contender, a column for each drill. */
export function printSummary(
  contenders: readonly string[],
  results: readonly { readonly drill: Drill; readonly entries: readonly Entry[] }[],
): void {
  printTable(
    `Who does what is wanted ("${NOT_GOOD}": see above what was done instead)`,
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
