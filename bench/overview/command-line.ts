import { parseArgs } from "node:util"
import { PARTS, type Part } from "./measurement.ts"

export interface OverviewCommand {
  readonly quick: boolean
  /** The parts to measure. */
  readonly parts: readonly Part[]
  /** The folder for the JSON file and the page. */
  readonly into: string
  /** Whether to write the measurements into bench/figures.json as well. */
  readonly figures: boolean
}

const ACCEPTED = `--quick, --figures, --into FOLDER, --only PART (${PARTS.join(", ")}), more than once; --behaviour; --help`

/** Reads the command line. Throws an Error that lists the accepted options. */
export function readOverviewCommand(args: readonly string[], into: string): OverviewCommand {
  try {
    const { values } = parseArgs({
      // pnpm also passes the dashes that end its own options.
      args: args.filter((argument) => argument !== "--"),
      options: {
        quick: { type: "boolean", default: false },
        figures: { type: "boolean", default: false },
        into: { type: "string", default: into },
        only: { type: "string", multiple: true, default: [...PARTS] },
      },
    })
    const unknown = values.only.find((part) => !PARTS.includes(part as Part))
    if (unknown !== undefined) throw new Error(`--only ${unknown} is not a part`)
    if (values.quick && values.figures) throw new Error("--figures needs a complete run, not --quick")
    return {
      quick: values.quick,
      parts: PARTS.filter((part) => values.only.includes(part)),
      into: values.into,
      figures: values.figures,
    }
  } catch (error) {
    throw new Error(`${(error as Error).message}. Accepted: ${ACCEPTED}`)
  }
}
