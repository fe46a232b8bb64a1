import { readFileSync } from "node:fs"
import { relative } from "node:path"
import type { Mutant } from "@stryker-mutator/api/core"
import { Instrumenter } from "@stryker-mutator/instrumenter"
import { globSync } from "tinyglobby"
import { isEquivalent } from "../equivalent-mutants.ts"

/** A file that contains all of its mutants, each of them disabled by a switch. */
export interface InstrumentedFile {
  readonly path: string
  readonly code: string
}

export interface Instrumented {
  readonly files: readonly InstrumentedFile[]
  /** The mutants, without the equivalent ones. */
  readonly mutants: readonly Mutant[]
}

const SILENT = {
  isTraceEnabled: () => false,
  isDebugEnabled: () => false,
  isInfoEnabled: () => false,
  isWarnEnabled: () => false,
  isErrorEnabled: () => true,
  isFatalEnabled: () => true,
  trace() {},
  debug() {},
  info() {},
  warn() {},
  error: console.error,
  fatal: console.error,
}

/** Returns the sources that match the patterns, into which Stryker's instrumenter has inserted all mutants. */
export async function instrument(patterns: readonly string[]): Promise<Instrumented> {
  const sources = globSync([...patterns], { absolute: true })
    .toSorted()
    .map((path) => ({
      name: path,
      content: readFileSync(path, "utf8"),
      mutate: true,
    }))
  const { files, mutants } = await new Instrumenter(SILENT).instrument(sources, {
    plugins: null,
    excludedMutations: [],
    ignorers: [],
  })
  const textOf = new Map(sources.map(({ name, content }) => [name, content]))
  return {
    files: files.map(({ name, content }) => ({ path: name, code: content })),
    mutants: mutants.filter(
      (mutant) =>
        !isEquivalent(mutant, relative(process.cwd(), mutant.fileName), textOf.get(mutant.fileName) ?? ""),
    ),
  }
}
