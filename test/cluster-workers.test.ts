import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { expect, it } from "vitest"

const PROGRAM = new URL("./cluster-worker-process.ts", import.meta.url).pathname

/** Runs the program, whose primary process starts one worker. Returns the warnings of both processes. */
async function warningsOf(mode: string): Promise<string[]> {
  const argv = ["--import", "tsx", PROGRAM, mode]
  const { stdout } = await promisify(execFile)(process.execPath, argv)
  return stdout.trim().split("\n")
}

it.each([
  ["memory", ["worker SLUICE_LIMIT_PER_WORKER", "done"]],
  ["disabled", ["done"]],
  ["shared", ["done"]],
])(
  "a limiter warns once, and only in a node:cluster worker with its own memory store: %s",
  async (mode, said) => {
    expect(await warningsOf(mode)).toEqual(said)
  },
)
