import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { findChromium } from "./chromium.ts"

const scratch = mkdtempSync(join(tmpdir(), "sluice-chromium-"))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** A program that prints a version line. */
function programAt(path: string, line: string): string {
  mkdirSync(join(path, ".."), { recursive: true })
  writeFileSync(path, `#!/bin/sh\necho "${line}"\n`)
  chmodSync(path, 0o755)
  return path
}

describe("findChromium", () => {
  it("prefers the program in SLUICE_CHROMIUM to PATH", async () => {
    const named = programAt(join(scratch, "named/chrome"), "Google Chrome 150.0")
    const onPath = programAt(join(scratch, "path/chromium"), "Chromium 150.0")
    const env = { SLUICE_CHROMIUM: named, PATH: join(onPath, "..") }
    expect(await findChromium({ env })).toEqual({ path: named, env: {} })
    expect(await findChromium({ env: { PATH: env.PATH } })).toEqual({ path: onPath, env: {} })
  })

  it("does not try another program if the file in SLUICE_CHROMIUM is not a Chromium", async () => {
    const other = programAt(join(scratch, "other/browser"), "Lynx 2.9")
    await expect(findChromium({ env: { ...process.env, SLUICE_CHROMIUM: other } })).rejects.toThrow(
      `SLUICE_CHROMIUM is ${other}, which is not a Chromium`,
    )
  })

  it("says in one line how to get Chromium if none is found and none can be unpacked", async () => {
    // The cache folder cannot be created below a file, so nothing is downloaded.
    const file = join(scratch, "a-file")
    writeFileSync(file, "")
    const failure = await findChromium({ env: { PATH: "" }, cacheFolder: join(file, "cache") }).catch(
      (error) => error,
    )
    expect(failure.stack).toMatch(
      /^Error: No Chromium found: .*apt-get install.*brew install.*SLUICE_CHROMIUM[^\n]*$/,
    )
  })
})
