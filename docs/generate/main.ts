// Generates docs/reference/api from the docstrings of everything that the packages export. `pnpm reference` runs it.
// With --check it writes nothing, and fails if the pages differ from those that it would write.

import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { CHAPTERS } from "./chapters.ts"
import { FOLDER, makeReference, stalePages } from "./reference.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = join(root, FOLDER)
const { pages, problems } = await makeReference(root, CHAPTERS)
if (process.argv.includes("--check")) {
  const stale = stalePages(pages, folder)
  report([
    ...problems,
    ...stale.map((name) => `${FOLDER}/${name} is not what the docstrings say: run \`pnpm reference\``),
  ])
} else {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of pages) writeFileSync(join(folder, name), text)
  report(problems)
}

function report(lines: readonly string[]): void {
  for (const line of lines) console.error(line)
  if (lines.length > 0) process.exitCode = 1
  else console.log(`${FOLDER}: ${pages.size} pages, nothing is missing`)
}
