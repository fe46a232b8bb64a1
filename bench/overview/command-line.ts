import { parseArgs } from "node:util"
import { PARTS, type Part } from "./measurement.ts"

export interface OverviewCommand {
  readonly quick: boolean
  /** Which parts to measure. */
  readonly parts: readonly Part[]
  /** The folder for the JSON and the page. */
  readonly into: string
}

const ACCEPTED = `--quick, --into FOLDER, --only PART (${PARTS.join(", ")}), more than once; --behaviour; --help`

/** What was asked for; throws an Error that says what is accepted. */
export function readOverviewCommand(args: readonly string[], into: string): OverviewCommand {
  try {
    const { values } = parseArgs({
      // pnpm hands on the dashes that end its own options.
      args: args.filter((argument) => argument !== "--"),
      options: {
        quick: { type: "boolean", default: false },
        into: { type: "string", default: into },
        only: { type: "string", multiple: true, default: [...PARTS] },
      },
    })
    const unknown = values.only.find((part) => !PARTS.includes(part as Part))
    if (unknown !== undefined) throw new Error(`--only ${unknown} is no part`)
    return {
      quick: values.quick,
      parts: PARTS.filter((part) => values.only.includes(part)),
      into: values.into,
    }
  } catch (error) {
    throw new Error(`${(error as Error).message}. Accepted: ${ACCEPTED}`)
  }
}
