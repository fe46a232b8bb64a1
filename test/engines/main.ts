import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { ENGINES, engineServer, wordOf } from "./engines.ts"
import { countsOf, type EngineRun, GROUP_NAMES, groupOf, type TestReport, tableOf } from "./table.ts"

const ROOT = fileURLToPath(new URL("../..", import.meta.url))

// `pnpm test:engines` runs the tests of test/redis on each engine, and prints a table. Words after the command choose
// engines and groups: `pnpm test:engines valkey-8.1 contracts`.
await main(process.argv.slice(2)).catch((error: Error) => {
  console.error(error.message)
  process.exitCode = 1
})

async function main(words: readonly string[]): Promise<void> {
  const known = [...ENGINES.map(wordOf), ...GROUP_NAMES]
  for (const word of words) {
    if (!known.includes(word)) throw new Error(`${word} is not an engine or a group: use ${known.join(", ")}`)
  }
  const chosen = <T>(all: readonly T[], word: (one: T) => string): readonly T[] => {
    const named = all.filter((one) => words.includes(word(one)))
    return named.length === 0 ? all : named
  }
  const groups = chosen(GROUP_NAMES, (name) => name)
  const files = readdirSync(join(ROOT, "test/redis"))
    .filter((name) => name.endsWith(".test.ts") && groups.includes(groupOf(name)))
    .map((name) => `test/redis/${name}`)
  const runs: EngineRun[] = []
  // Unpack all engines before the first test, so that a failed download does not waste a run.
  const servers = []
  for (const engine of chosen(ENGINES, wordOf)) servers.push({ engine, found: await engineServer(engine) })
  for (const { engine, found } of servers) {
    const name = `${engine.name.split(" ")[0]} ${found.version}`
    console.log(`\n${name}`)
    runs.push({ engine: name, report: await test(found.server, files) })
  }
  console.log(`\n${tableOf(runs).join("\n")}`)
  const isGreen = runs.every(({ report }) => {
    const [passed, all] = countsOf(report)
    return passed === all && all > 0
  })
  process.exitCode = isGreen ? 0 : 1
}

/** Runs test files on a server. Resolves to Vitest's report, even if tests fail. */
async function test(server: string, files: readonly string[]): Promise<TestReport> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-engines-"))
  const file = join(folder, "report.json")
  try {
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`]
    const vitest = join(ROOT, "node_modules/vitest/vitest.mjs")
    const child = spawn(process.execPath, [vitest, "run", ...reporters, ...files], {
      cwd: ROOT,
      env: { ...process.env, SLUICE_REDIS_SERVER: server },
      stdio: "inherit",
    })
    await once(child, "exit")
    return JSON.parse(readFileSync(file, "utf8")) as TestReport
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
