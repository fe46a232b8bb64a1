import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const SLUICE = fileURLToPath(new URL("bin/sluice.js", import.meta.resolve("@sluice/cli/package.json")))

/** Runs `sluice` as a user does, and yields what it prints. Rejects when it does not end with 0. */
export async function sluice(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [SLUICE, ...args])
  return stdout.trimEnd()
}
