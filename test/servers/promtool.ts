import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { findProgram, type Places } from "./find-program.ts"

const run = promisify(execFile)
/** Both programs are in one package, which is unpacked once. */
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/sluice-promtool", import.meta.url))

/**
 * Returns the path of promtool, Prometheus' tool for rules: the file in SLUICE_PROMTOOL, or as {@link findProgram}
 * finds it.
 */
export function findPromtool(places?: Places): Promise<string> {
  return findIn("promtool", "promtool", places)
}

/** Returns the path of Prometheus itself: the file in SLUICE_PROMETHEUS, or as {@link findProgram} finds it. */
export function findPrometheus(places?: Places): Promise<string> {
  return findIn("Prometheus", "prometheus", places)
}

function findIn(noun: string, name: string, places?: Places): Promise<string> {
  return findProgram(
    {
      noun,
      variable: `SLUICE_${name.toUpperCase()}`,
      names: [name],
      packages: ["prometheus"],
      standsAlone: true,
      path: `usr/bin/${name}`,
      install: "Debian, Ubuntu: sudo apt-get install prometheus; macOS: brew install prometheus",
      inspect: async (path) => ((await isProgram(path, name)) ? path : undefined),
    },
    { cacheFolder: CACHE, ...places },
  )
}

async function isProgram(path: string, name: string): Promise<boolean> {
  try {
    const { stdout } = await run(path, ["--version"], { timeout: 30_000 })
    return stdout.startsWith(name)
  } catch {
    return false
  }
}
