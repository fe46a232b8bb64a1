import type { Io } from "../../packages/cli/src/io.ts"
import { run } from "../../packages/cli/src/run.ts"

/** Set this variable, as the program does when it starts. */
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true"

/** The result of a run of the command line. */
export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** The inputs of a run in addition to its command line. */
export interface Surroundings {
  readonly stdin?: string
  readonly isTTY?: boolean
  readonly columns?: number
  readonly env?: Io["env"]
  /** The error to throw when standard input is read. */
  readonly failure?: unknown
}

/** Runs the command line in this process. */
export async function sluice(
  argv: readonly string[],
  { stdin = "", isTTY, columns, env = {}, failure }: Surroundings = {},
): Promise<Ran> {
  let out = ""
  let err = ""
  const code = await run(argv, {
    stdin: (async function* () {
      // Pass standard input in two chunks, the first of which may end within a character.
      const bytes = Buffer.from(stdin)
      yield bytes.subarray(0, 1)
      yield bytes.subarray(1)
      if (failure !== undefined) throw failure
    })(),
    stdout: {
      isTTY,
      columns,
      write(text) {
        out += text
      },
    },
    stderr: {
      isTTY,
      write(text) {
        err += text
      },
    },
    env,
  })
  return { code, out, err }
}
