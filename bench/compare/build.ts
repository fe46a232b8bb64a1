import { pathToFileURL } from "node:url"
import type { ContenderOptions } from "../contender-process.ts"

/** The environment variable from which a measured process reads the build to use. */
export const BUILD = "SLUICE_BENCH_BUILD"

const USE_BUILD = new URL("./use-build.ts", import.meta.url).href

/**
 * Sets the young generation to its largest size from the start. Otherwise its size grows by chance. For example, one
 * of two equal processes ran 1.5 times as many garbage collections as the other, and used 8 % more CPU.
 */
export const FLAGS: readonly string[] = ["--min-semi-space-size=16", "--max-semi-space-size=16"]

/** Returns the options of a process that loads `@sluice/core` and the adapters from the given tree. */
export function withBuild(root: string): ContenderOptions {
  // The hooks resolve the packages as dependencies of the tree's bench folder.
  const bench = pathToFileURL(`${root}/bench/package.json`).href
  return { imports: [USE_BUILD], env: { [BUILD]: bench }, flags: FLAGS }
}
