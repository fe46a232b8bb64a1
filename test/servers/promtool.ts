import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { findProgram, type Places } from "./find-program.ts"

const run = promisify(execFile)

/**
 * Returns the path of promtool, Prometheus' tool for rules: the file in SLUICE_PROMTOOL, or as {@link findProgram}
 * finds it.
 */
export function findPromtool(places?: Places): Promise<string> {
  return findProgram(
    {
      noun: "promtool",
      variable: "SLUICE_PROMTOOL",
      names: ["promtool"],
      packages: ["prometheus"],
      standsAlone: true,
      path: "usr/bin/promtool",
      install: "Debian, Ubuntu: sudo apt-get install prometheus; macOS: brew install prometheus",
      inspect: async (path) => ((await isPromtool(path)) ? path : undefined),
    },
    places,
  )
}

async function isPromtool(path: string): Promise<boolean> {
  try {
    const { stdout } = await run(path, ["--version"], { timeout: 30_000 })
    return stdout.startsWith("promtool")
  } catch {
    return false
  }
}
