import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { ROOT } from "./calls/root.ts"
import { type Calls, WAYS, type Way } from "./calls/ways.ts"
import { Worktree } from "./compare/worktree.ts"
import { printTable } from "./report/table.ts"

// Counts the functions of Sluice that run for one admitted request or for the text of a rule, and their files:
// `bench:calls [COMMIT] [--files]`. Given a commit, it also counts them in the sources of that commit.
// bench/README.md explains the output.

const here = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "")

function callsOf(way: Way, root: string): Calls {
  const program = fileURLToPath(new URL("calls/one-request.ts", import.meta.url))
  const hooks = new URL("calls/use-sources.ts", import.meta.url).href
  const printed = execFileSync(
    process.execPath,
    [...process.execArgv, "--import", hooks, program, way, root],
    {
      env: { ...process.env, [ROOT]: root },
      encoding: "utf8",
    },
  )
  return JSON.parse(printed)
}

function sumOf(calls: Calls): number {
  return Object.values(calls)
    .flatMap((functions) => Object.values(functions))
    .reduce((sum, count) => sum + count, 0)
}

function print(tree: string, root: string, showsFiles: boolean): void {
  const rows: string[][] = []
  for (const way of WAYS) {
    const calls = callsOf(way, root)
    rows.push([way, `${sumOf(calls)}`, `${Object.keys(calls).length}`])
    if (!showsFiles) continue
    for (const [file, functions] of Object.entries(calls).sort()) {
      const names = Object.entries(functions).map(([name, count]) =>
        count === 1 ? name : `${name} ${count}x`,
      )
      console.log(`${way}  ${file}: ${names.join(", ")}`)
    }
  }
  printTable(`One admitted request on the memory store, ${tree}`, ["", "calls", "files"], rows)
}

const { values, positionals } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== "--"),
  allowPositionals: true,
  options: { files: { type: "boolean", default: false } },
})
const [commit] = positionals
print("in this tree", here, values.files)
if (commit !== undefined) {
  const worktree = new Worktree(here, commit)
  try {
    await worktree.build()
    print(`at ${worktree.commit}`, worktree.root, values.files)
  } finally {
    await worktree.remove()
  }
}
