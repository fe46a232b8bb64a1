import { pathToFileURL } from "node:url"
import type { ContenderOptions } from "../contender-process.ts"

/** A tree whose packages are built. */
export interface Build {
  readonly name: string
  /** The folder of the repository. */
  readonly root: string
}

/** The environment variable that names the build to a measured process. */
export const BUILD = "SLUICE_BENCH_BUILD"

const USE_BUILD = new URL("./use-build.ts", import.meta.url).href

/** Returns the options of a process in which `@sluice/core` and the adapters are those of the build. */
export function withBuild({ root }: Build): ContenderOptions {
  // The packages are what the folder of the benchmark depends on.
  const bench = pathToFileURL(`${root}/bench/package.json`).href
  return { imports: [USE_BUILD], env: { [BUILD]: bench } }
}
