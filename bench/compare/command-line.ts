import { parseArgs } from "node:util"
import { GROUPS, type Group, isGroup } from "./measurements.ts"

export interface CompareCommand {
  /** The commit to compare with, in any form that git accepts. */
  readonly commit: string
  readonly groups: readonly Group[]
  /** Number of rounds in which each build is measured. */
  readonly rounds: number
  /** The output file for every sample. */
  readonly json: string | undefined
}

const FEWEST_ROUNDS = 10
const QUICK_ROUNDS = 2
const MOST_ROUNDS = 999

const ACCEPTED = `bench:compare COMMIT [--only ${GROUPS.join(",")}] [--rounds NUMBER] [--quick] [--json FILE]`

/** Reads the command line. Throws an Error whose one-line message contains the problem and the usage. */
export function readCompareCommand(args: readonly string[]): CompareCommand {
  try {
    const { values, positionals } = parseArgs({
      // pnpm also passes the dashes that end its own options.
      args: args.filter((argument) => argument !== "--"),
      allowPositionals: true,
      options: {
        only: { type: "string", multiple: true, default: [] },
        rounds: { type: "string", default: String(FEWEST_ROUNDS) },
        quick: { type: "boolean", default: false },
        json: { type: "string" },
      },
    })
    const [commit] = positionals
    if (commit === undefined) throw new Error("Name the commit to compare with")
    if (positionals.length > 1) throw new Error(`Name one commit, not ${positionals.join(" and ")}`)
    return {
      commit,
      groups: groupsOf(values.only),
      rounds: values.quick ? QUICK_ROUNDS : roundsOf(values.rounds),
      json: values.json,
    }
  } catch (error) {
    throw new Error(`${(error as Error).message.replace(/\.$/, "")}. Usage: ${ACCEPTED}`)
  }
}

function groupsOf(only: readonly string[]): readonly Group[] {
  const named = only.flatMap((list) => list.split(","))
  const unknown = named.find((name) => !isGroup(name))
  if (unknown !== undefined)
    throw new Error(`--only ${JSON.stringify(unknown)} is not a group; use ${GROUPS.join(", ")}`)
  return named.length === 0 ? GROUPS : GROUPS.filter((group) => named.includes(group))
}

function roundsOf(text: string): number {
  const rounds = Number(text)
  if (Number.isInteger(rounds) && rounds >= FEWEST_ROUNDS && rounds <= MOST_ROUNDS) return rounds
  throw new Error(
    `--rounds ${JSON.stringify(text)} is invalid; use an integer from ${FEWEST_ROUNDS} to ${MOST_ROUNDS}`,
  )
}
