import { pathToFileURL } from "node:url"
import type { ContenderOptions } from "../contender-process.ts"

/** The environment variable that names the build to a measured process. */
export const BUILD = "SLUICE_BENCH_BUILD"

const USE_BUILD = new URL("./use-build.ts", import.meta.url).href

/**
 * The young generation has its largest size from the start. V8 would let it grow by chance: of two equal processes one collected
 * garbage half as often again as the other, and used 8 % more CPU.
 */
export const FLAGS: readonly string[] = ["--min-semi-space-size=16", "--max-semi-space-size=16"]

/** Returns the options of a process in which `@sluice/core` and the adapters are those of the tree. */
export function withBuild(root: string): ContenderOptions {
  // The packages are what the folder of the benchmark depends on.
  const bench = pathToFileURL(`${root}/bench/package.json`).href
  return { imports: [USE_BUILD], env: { [BUILD]: bench }, flags: FLAGS }
}
