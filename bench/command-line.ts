import { parseArgs } from "node:util"

export interface CommandLine {
  /** Whether to run fewer rounds, which only check that everything works and give rough figures. */
  readonly quick: boolean
  /** The output file for every sample and figure. */
  readonly json: string | undefined
  /** Measures only contenders whose name contains this text. */
  readonly only: string
  /** Number of processes to start for each contender. This is undefined if the option is absent. */
  readonly starts: number | undefined
}

const OPTIONS = {
  quick: { type: "boolean", default: false },
  json: { type: "string" },
  only: { type: "string", default: "" },
} as const

/** Reads the command line. If an option is invalid, prints the accepted options and ends the process. */
export function readCommandLine({ takesStarts = false } = {}): CommandLine {
  try {
    const { values } = parseArgs({
      // pnpm also passes the dashes that end its own options.
      args: process.argv.slice(2).filter((argument) => argument !== "--"),
      options: takesStarts ? { ...OPTIONS, starts: { type: "string" } } : OPTIONS,
    })
    const { quick, json, only } = values
    const starts = "starts" in values ? wholeNumber(values.starts as string) : undefined
    return { quick, json, only, starts }
  } catch (error) {
    const accepted = `--quick, --json FILE, --only PART_OF_A_NAME${takesStarts ? ", --starts NUMBER" : ""}`
    console.error(`${(error as Error).message}. Accepted: ${accepted}`)
    process.exit(2)
  }
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new Error(`--starts ${text} is invalid; use a number from 1 to 999`)
  return Number(text)
}
