import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const SLUICE = fileURLToPath(new URL("bin/sluice.js", import.meta.resolve("@sluice/cli/package.json")))

/** Runs `sluice` like a user, and resolves to its output. Rejects if the exit code is not 0. */
export async function sluice(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [SLUICE, ...args])
  return stdout.trimEnd()
}
