import { readFileSync } from "node:fs"
import type { InstrumentedFile } from "./instrument.ts"

/** What a run of the tests is for: to see which mutants each test reaches, or to try some. vitest's process is told in a file. */
export interface RunTask {
  /** Files of tests in the order in which they run, or patterns of them. */
  readonly tests: readonly string[]
  readonly needsRedis: boolean
  /** Milliseconds after which a test that does not end is red. */
  readonly timeoutMs: number
  /** Milliseconds that a test with a mutant may take beyond many times what it took without. */
  readonly graceMs: number
  /** Milliseconds that each test took without mutants, by its id; empty in a run that finds that out. */
  readonly tookMs: Readonly<Record<string, number>>
  readonly files: readonly InstrumentedFile[]
  /** What is to be tried; undefined in a run that finds out what each test reaches. */
  readonly trials: Hits | undefined
  /** What is learned is written here, a line each, at once. */
  readonly log: string
}

/** By the id of a test, how often it comes by each mutant that it reaches. */
export type Hits = Readonly<Record<string, Readonly<Record<string, number>>>>

/** A line of the log. */
export type Line =
  | {
      readonly kind: "reached"
      readonly test: string
      readonly file: string
      readonly tookMs: number
      readonly hits: Hits[string]
    }
  /** Mutants that files come by while they are loaded. */
  | { readonly kind: "loaded"; readonly mutants: readonly string[] }
  /** The last one, in a run in which nothing happens any more, says what hangs. */
  | { readonly kind: "trying"; readonly mutant: string; readonly test: string }
  | { readonly kind: "noticed"; readonly mutant: string; readonly test: string; readonly by: string }
  | { readonly kind: "tried"; readonly test: string }
  /** Red without any mutant: what the test would say of one is worth nothing. */
  | { readonly kind: "spoiled"; readonly test: string }

/** How much longer than without a mutant a test may take: what waits for something that does not come never ends. */
const MOST_TIMES = 20

/** Milliseconds that a test may take with a mutant. */
export function mostMsWithMutant({ tookMs, graceMs }: RunTask, test: string): number {
  return MOST_TIMES * (tookMs[test] ?? 0) + graceMs
}

export function readTask(): RunTask {
  return JSON.parse(readFileSync(process.env.MUTATION_TASK ?? "", "utf8")) as RunTask
}

export function readLog(path: string): readonly Line[] {
  const lines = readFileSync(path, "utf8").split("\n")
  // The last is empty, or was being written when the process was ended.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Line)
}
