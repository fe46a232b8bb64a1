import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { type Browser, chromium } from "playwright-core"
import { findProgram, type Places } from "./find-program.ts"

const run = promisify(execFile)

/** A Chromium that runs on this machine. */
export interface ChromiumBinary {
  /** Absolute path of the program. */
  readonly path: string
  /** Extra environment variables for it: LD_LIBRARY_PATH, which an unpacked Chromium needs. */
  readonly env: Readonly<Record<string, string>>
}

/** Finds the Chromium for the tests: the file in SLUICE_CHROMIUM, or as {@link findProgram} finds it. */
export function findChromium(places?: Places): Promise<ChromiumBinary> {
  return findProgram(
    {
      noun: "Chromium",
      variable: "SLUICE_CHROMIUM",
      names: ["chromium-headless-shell", "chromium", "google-chrome"],
      packages: ["chromium-headless-shell"],
      path: "usr/lib/chromium/chromium-headless-shell",
      install: "Debian: sudo apt-get install chromium-headless-shell; macOS: brew install chromium",
      inspect,
    },
    places,
  )
}

/** Starts Chromium. Rejects with a one-line error if no Chromium is found. */
export async function startChromium(): Promise<Browser> {
  const { path, env } = await findChromium()
  return chromium.launch({
    executablePath: path,
    // Disable Chromium's sandbox, because it runs neither as root nor in most containers. This is safe, because the
    // pages are our own.
    args: ["--no-sandbox"],
    env: { ...(process.env as Record<string, string>), ...env },
  })
}

async function inspect(
  path: string,
  env: Readonly<Record<string, string>>,
): Promise<ChromiumBinary | undefined> {
  try {
    const { stdout } = await run(path, ["--version"], { env: { ...process.env, ...env }, timeout: 30_000 })
    return /^(Chromium|Google Chrome)\b/.test(stdout) ? { path, env } : undefined
  } catch {
    return undefined
  }
}
