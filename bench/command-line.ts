import { parseArgs } from "node:util"

export interface CommandLine {
  /** Fewer rounds: shows that everything runs, and roughly where the figures are. */
  readonly quick: boolean
  /** The file that gets every sample and figure. */
  readonly json: string | undefined
  /** Only contenders whose name contains this. */
  readonly only: string
  /** Processes to start for each contender; undefined when nothing is asked. */
  readonly starts: number | undefined
}

const OPTIONS = {
  quick: { type: "boolean", default: false },
  json: { type: "string" },
  only: { type: "string", default: "" },
} as const

/** What was asked for on the command line; a wrong option ends the process with what is accepted. */
export function readCommandLine({ takesStarts = false } = {}): CommandLine {
  try {
    const { values } = parseArgs({
      // pnpm hands on the dashes that end its own options.
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
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new Error(`${text} is no number of starts from 1 to 999`)
  return Number(text)
}
