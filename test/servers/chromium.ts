import { execFile } from "node:child_process"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { isProgram, oneLine, unpackedProgram } from "./debian-packages.ts"

const run = promisify(execFile)

/** A Chromium that runs on this machine. */
export interface ChromiumBinary {
  /** Absolute path of the program. */
  readonly path: string
  /** Extra environment variables for it: LD_LIBRARY_PATH for an unpacked Chromium. */
  readonly env: Readonly<Record<string, string>>
}

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/sluice-chromium", import.meta.url))

const NAMES = ["chromium-headless-shell", "chromium", "google-chrome"]

/** The message is one line, which is all that the reader of a failed test run needs. */
const HOW_TO_GET_IT =
  "No Chromium found: install one (Debian: sudo apt-get install chromium-headless-shell; macOS: brew install chromium) " +
  "or set SLUICE_CHROMIUM to the path of Chromium or Chrome"

/**
 * Finds the Chromium to test with. Tries the file in SLUICE_CHROMIUM, then the usual names on PATH. Otherwise unpacks
 * Debian's package once into node_modules/.cache, without root and without changing the machine. Rejects with an Error
 * with one line that explains how to get Chromium.
 */
export async function findChromium(
  env: NodeJS.ProcessEnv = process.env,
  cacheFolder: string = CACHE_FOLDER,
): Promise<ChromiumBinary> {
  const named = env.SLUICE_CHROMIUM
  if (named !== undefined && named !== "") {
    const binary = await inspect(named)
    if (binary === undefined) throw oneLine(`SLUICE_CHROMIUM is ${named}, which is not a Chromium that runs`)
    return binary
  }
  for (const name of NAMES) {
    for (const folder of (env.PATH ?? "").split(delimiter)) {
      const binary = folder === "" ? undefined : await inspect(join(folder, name))
      if (binary !== undefined) return binary
    }
  }
  try {
    return await unpackedProgram({
      packages: ["chromium-headless-shell"],
      cacheFolder,
      inspect: (root, libraries) =>
        inspect(join(root, "usr/lib/chromium/chromium-headless-shell"), libraries),
    })
  } catch {
    throw oneLine(HOW_TO_GET_IT)
  }
}

/** Returns the program at a path. Returns undefined if it does not exist, does not run or is not a Chromium. */
async function inspect(
  path: string,
  env: Readonly<Record<string, string>> = {},
): Promise<ChromiumBinary | undefined> {
  if (!isProgram(path)) return undefined
  try {
    const { stdout } = await run(path, ["--version"], { env: { ...process.env, ...env }, timeout: 30_000 })
    return /^(Chromium|Google Chrome)\b/.test(stdout) ? { path, env } : undefined
  } catch {
    return undefined
  }
}
