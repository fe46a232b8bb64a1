import { pathToFileURL } from "node:url"
import type { ContenderOptions } from "../contender-process.ts"

/** The environment variable that names the build to a measured process. */
export const BUILD = "SLUICE_BENCH_BUILD"

const USE_BUILD = new URL("./use-build.ts", import.meta.url).href

/** Returns the options of a process in which `@sluice/core` and the adapters are those of the tree. */
export function withBuild(root: string): ContenderOptions {
  // The packages are what the folder of the benchmark depends on.
  const bench = pathToFileURL(`${root}/bench/package.json`).href
  return { imports: [USE_BUILD], env: { [BUILD]: bench } }
}
