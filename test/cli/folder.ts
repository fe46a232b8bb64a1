import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"

/** A folder for the files of a test file. */
export interface Folder {
  readonly folder: string
  /** Writes a file into the folder. Returns its path. */
  file(name: string, content: string | Uint8Array): string
}

/** Creates a folder, which is removed after the tests. */
export function useFolder(): Folder {
  const folder = mkdtempSync(join(tmpdir(), "sluice-cli-"))
  afterAll(() => rmSync(folder, { recursive: true }))
  return {
    folder,
    file(name, content) {
      const path = join(folder, name)
      writeFileSync(path, content)
      return path
    },
  }
}
