import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { findChromium } from "./chromium.ts"
import type { Places } from "./find-program.ts"
import { findPromtool } from "./promtool.ts"
import { findRedis } from "./redis-binary.ts"

const scratch = mkdtempSync(join(tmpdir(), "sluice-programs-"))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** A program that prints a version line. */
function programAt(path: string, line: string): string {
  mkdirSync(join(path, ".."), { recursive: true })
  writeFileSync(path, `#!/bin/sh\necho "${line}"\n`)
  chmodSync(path, 0o755)
  return path
}

type Find = (places: Places) => Promise<string>

describe.each<[noun: string, variable: string, name: string, line: string, find: Find]>([
  ["Chromium", "SLUICE_CHROMIUM", "chromium", "Chromium 150.0", async (p) => (await findChromium(p)).path],
  ["promtool", "SLUICE_PROMTOOL", "promtool", "promtool, version 3.0", findPromtool],
  [
    "Redis server",
    "SLUICE_REDIS_SERVER",
    "redis-server",
    "Redis server v=9.9.9 sha=0",
    async (p) => (await findRedis(p)).server,
  ],
])("the search for the program %s", (noun, variable, name, line, find) => {
  it("prefers the program that its environment variable names to one on the PATH", async () => {
    const named = programAt(join(scratch, name, "named/program"), line)
    const onPath = programAt(join(scratch, name, "path", name), line)
    const PATH = join(onPath, "..")
    expect(await find({ env: { [variable]: named, PATH } })).toBe(named)
    expect(await find({ env: { PATH } })).toBe(onPath)
  })

  it("rejects if its environment variable names the wrong program", async () => {
    const other = programAt(join(scratch, name, "other/program"), "Lynx 2.9")
    await expect(find({ env: { ...process.env, [variable]: other } })).rejects.toThrow(
      `${variable} is ${other}, which is not a ${noun}`,
    )
  })

  it("rejects with one line of instructions if the program can be neither found nor unpacked", async () => {
    // The cache folder cannot be created below a file, so nothing is downloaded.
    const file = join(scratch, `${name}-file`)
    writeFileSync(file, "")
    const failure = await find({ env: { PATH: "" }, cacheFolder: join(file, "cache") }).catch(
      (error) => error,
    )
    expect(failure.stack).toMatch(
      new RegExp(`^Error: No ${noun} found: .*apt-get install.*brew install.*${variable}[^\\n]*$`),
    )
  })
})
