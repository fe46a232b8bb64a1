import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"

/** Writes rules into a file in a new folder, which is removed after the tests. Returns the path of the file. */
export function rulesFile(rules: string): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-service-"))
  afterAll(() => rmSync(folder, { recursive: true }))
  const path = join(folder, "rules.yaml")
  writeFileSync(path, rules)
  return path
}
