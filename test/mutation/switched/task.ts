import { readFileSync } from "node:fs"
import type { InstrumentedFile } from "./instrument.ts"

/**
 * The purpose of a test run, which either finds the mutants that each test reaches or tries some mutants. Vitest's
 * process reads the task from a file.
 */
export interface RunTask {
  /** Test files in the order in which they run, or patterns for test files. */
  readonly tests: readonly string[]
  readonly needsRedis: boolean
  /** Milliseconds after which a test fails if it has not ended. */
  readonly timeoutMs: number
  /** Milliseconds that a test with a mutant may take in addition to a multiple of its usual time. */
  readonly graceMs: number
  /**
   * Milliseconds that each test took without mutants, keyed by the id of the test. Empty in the run that measures the
   * times.
   */
  readonly tookMs: Readonly<Record<string, number>>
  readonly files: readonly InstrumentedFile[]
  /** The mutants to try. Undefined in a run that finds the mutants that each test reaches. */
  readonly trials: Hits | undefined
  /** The file to which results are written immediately, one per line. */
  readonly log: string
}

/** How often a test reaches each mutant, keyed by the id of the test. */
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
  /** The mutants that are reached while files are loaded. */
  | { readonly kind: "loaded"; readonly mutants: readonly string[] }
  /** Written before a mutant is tried. If a run hangs, its last line of this kind identifies the mutant. */
  | { readonly kind: "trying"; readonly mutant: string; readonly test: string }
  | { readonly kind: "noticed"; readonly mutant: string; readonly test: string; readonly by: string }
  | { readonly kind: "tried"; readonly test: string }
  /** The test fails without any mutant, so its results with a mutant are meaningless. */
  | { readonly kind: "spoiled"; readonly test: string }

/**
 * The factor by which a test with a mutant may be slower. Without this limit, a test that waits for an event that
 * never occurs would never end.
 */
const MOST_TIMES = 20

/** Returns the milliseconds that a test with a mutant may take. */
export function mostMsWithMutant({ tookMs, graceMs }: RunTask, test: string): number {
  return MOST_TIMES * (tookMs[test] ?? 0) + graceMs
}

export function readTask(): RunTask {
  return JSON.parse(readFileSync(process.env.MUTATION_TASK ?? "", "utf8")) as RunTask
}

export function readLog(path: string): readonly Line[] {
  const lines = readFileSync(path, "utf8").split("\n")
  // Ignore the last line, which is empty or was incomplete when the process ended.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Line)
}
