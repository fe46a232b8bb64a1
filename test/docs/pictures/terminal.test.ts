import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { DEMO } from "../../../docs/pictures/terminal.ts"
import { ROOT } from "../documents.ts"

/**
 * Replaces the values that differ between runs: times, and the counts of a run that crosses a minute. Keeps the
 * limits.
 */
function steady(output: string): readonly string[] {
  const limits = /203\.0\.113\.\d+|ip-1m|q=\d+;w=\d+|\d+ in \d+ s|\d+ requests:|HTTP\/1\.1 429/
  return output
    .trim()
    .split("\n")
    .filter((line) => !line.startsWith("Date: "))
    .map((line) =>
      line
        .replace(new RegExp(`(${limits.source})|\\d+`, "g"), (_, limit?: string) => limit ?? "0")
        .replace(/seconds?\b/, "seconds")
        .replace(/ +/g, " ")
        .trimEnd(),
    )
}

it("the picture of the terminal shows the output of the demo", async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", "examples/src/demo/main.ts"],
    { cwd: ROOT, env: { ...process.env, TSX_TSCONFIG_PATH: `${ROOT}examples/tsconfig.json` } },
  )
  // If this fails, record the demo again: docs/pictures/terminal.ts explains how.
  expect(steady(stdout)).toEqual(steady(DEMO))
})
