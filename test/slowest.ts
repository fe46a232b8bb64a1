import { existsSync, readFileSync } from "node:fs"
import { globSync } from "tinyglobby"

const SHOWN = 20

/**
 * The data that Vitest stores for each file until its next run. The key is the name of a project, a colon and a path.
 */
interface Kept {
  readonly results: readonly (readonly [key: string, { readonly duration: number }])[]
}

// `pnpm test:slowest` prints the slowest test files, by the latest run of each.
const caches = globSync("node_modules/.vite/vitest/*/results.json", { dot: true })
if (caches.length === 0)
  console.log("Run the tests first. This command only prints the durations of that run.")
const files = caches
  .flatMap((cache) => (JSON.parse(readFileSync(cache, "utf8")) as Kept).results)
  .map(([key, { duration }]) => ({ path: key.slice(key.indexOf(":") + 1), seconds: duration / 1_000 }))
  .filter(({ path }) => path.endsWith(".test.ts") && existsSync(path))
  .sort((one, other) => other.seconds - one.seconds)
for (const { path, seconds } of files.slice(0, SHOWN))
  console.log(`${seconds.toFixed(1).padStart(7)} s  ${path}`)
const total = files.reduce((sum, { seconds }) => sum + seconds, 0)
console.log(`${total.toFixed(1).padStart(7)} s  all ${files.length} files, one after the other`)
