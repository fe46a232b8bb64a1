import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Folder } from "./folder.ts"

/**
 * Returns the URLs of all files that Node runs for a program. The URLs come from V8's coverage, which includes ES
 * modules and CommonJS on any version of Node. Rejects with the program's output if the program fails.
 */
export async function filesLoadedBy(folder: Folder, program: string): Promise<string[]> {
  const reports = mkdtempSync(join(tmpdir(), "sluice-loaded-"))
  try {
    folder.write("loading.js", program)
    const ran = await folder.start("node", ["loading.js"], { NODE_V8_COVERAGE: reports }).ended
    if (ran.code !== 0) throw new Error(ran.stderr)
    return readdirSync(reports).flatMap((report) => {
      const { result }: { readonly result: readonly { readonly url: string }[] } = JSON.parse(
        readFileSync(join(reports, report), "utf8"),
      )
      return result.map(({ url }) => url).filter((url) => url.startsWith("file:"))
    })
  } finally {
    rmSync(reports, { recursive: true })
  }
}
