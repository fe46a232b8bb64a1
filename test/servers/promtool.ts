import { execFile } from "node:child_process"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { isProgram, oneLine, unpackedProgram } from "./debian-packages.ts"

const run = promisify(execFile)

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/sluice-prometheus", import.meta.url))

/** The message is one line, which is all that the reader of a failed test run needs. */
const HOW_TO_GET_IT =
  "No promtool found: install Prometheus (Debian, Ubuntu: sudo apt-get install prometheus; macOS: brew install " +
  "prometheus) or set SLUICE_PROMTOOL to the path of promtool"

/**
 * Returns the path of Prometheus' tool for rules. Tries the file in SLUICE_PROMTOOL, then PATH. Otherwise unpacks
 * Debian's package once into node_modules/.cache, without root and without changing the machine. Rejects with an Error
 * with one line that explains how to get promtool.
 */
export async function findPromtool(
  env: NodeJS.ProcessEnv = process.env,
  cacheFolder: string = CACHE_FOLDER,
): Promise<string> {
  const named = env.SLUICE_PROMTOOL
  if (named !== undefined && named !== "") {
    if (await runs(named)) return named
    throw oneLine(`SLUICE_PROMTOOL is ${named}, which is not a promtool that runs`)
  }
  for (const folder of (env.PATH ?? "").split(delimiter)) {
    const path = join(folder, "promtool")
    if (folder !== "" && (await runs(path))) return path
  }
  try {
    return await unpackedProgram({
      packages: ["prometheus"],
      standsAlone: true,
      cacheFolder,
      async inspect(root) {
        const path = join(root, "usr/bin/promtool")
        return (await runs(path)) ? path : undefined
      },
    })
  } catch {
    throw oneLine(HOW_TO_GET_IT)
  }
}

/** True if the path is a promtool that runs. */
async function runs(path: string): Promise<boolean> {
  if (!isProgram(path)) return false
  try {
    const { stdout } = await run(path, ["--version"], { timeout: 30_000 })
    return stdout.startsWith("promtool")
  } catch {
    return false
  }
}
