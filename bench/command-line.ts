import { parseArgs } from "node:util"

export interface CommandLine {
  /** Fewer rounds: shows that everything runs, and roughly where the figures are. */
  readonly quick: boolean
  /** The file that gets every sample and figure. */
  readonly json: string | undefined
  /** Only contenders whose name contains this. */
  readonly only: string
}

/** What was asked for on the command line; an unknown option ends the process with what is accepted. */
export function readCommandLine(): CommandLine {
  try {
    const { values } = parseArgs({
      // pnpm hands on the dashes that end its own options.
      args: process.argv.slice(2).filter((argument) => argument !== "--"),
      options: {
        quick: { type: "boolean", default: false },
        json: { type: "string" },
        only: { type: "string", default: "" },
      },
    })
    return { quick: values.quick, json: values.json, only: values.only }
  } catch (error) {
    console.error(`${(error as Error).message}. Accepted: --quick, --json FILE, --only PART_OF_A_NAME`)
    process.exit(2)
  }
}
