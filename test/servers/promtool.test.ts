import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { findPromtool } from "./promtool.ts"

const scratch = mkdtempSync(join(tmpdir(), "sluice-promtool-"))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** A program that prints a version line. */
function programAt(path: string, line: string): string {
  mkdirSync(join(path, ".."), { recursive: true })
  writeFileSync(path, `#!/bin/sh\necho "${line}"\n`)
  chmodSync(path, 0o755)
  return path
}

describe("findPromtool", () => {
  it("prefers the program in SLUICE_PROMTOOL to PATH", async () => {
    const named = programAt(join(scratch, "named/my-tool"), "promtool, version 3.0")
    const onPath = programAt(join(scratch, "path/promtool"), "promtool, version 2.0")
    const env = { SLUICE_PROMTOOL: named, PATH: join(onPath, "..") }
    expect(await findPromtool({ env })).toBe(named)
    expect(await findPromtool({ env: { PATH: env.PATH } })).toBe(onPath)
  })

  it("does not try another program if the file in SLUICE_PROMTOOL is not a promtool", async () => {
    const other = programAt(join(scratch, "other/tool"), "amtool, version 1.0")
    await expect(findPromtool({ env: { ...process.env, SLUICE_PROMTOOL: other } })).rejects.toThrow(
      `SLUICE_PROMTOOL is ${other}, which is not a promtool`,
    )
  })

  it("says in one line how to get promtool if none is found and none can be unpacked", async () => {
    // The cache folder cannot be created below a file, so nothing is downloaded.
    const file = join(scratch, "a-file")
    writeFileSync(file, "")
    const failure = await findPromtool({ env: { PATH: "" }, cacheFolder: join(file, "cache") }).catch(
      (error) => error,
    )
    expect(failure.stack).toMatch(
      /^Error: No promtool found: .*apt-get install.*brew install.*SLUICE_PROMTOOL[^\n]*$/,
    )
  })
})
