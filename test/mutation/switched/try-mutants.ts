import { mkdtempSync, rmSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import type { Instrumented } from "./instrument.ts"
import { Run } from "./run.ts"
import type { Hits, Line } from "./task.ts"

/** The tests that run with mutants. */
export interface Tests {
  readonly tests: readonly string[]
  readonly needsRedis: boolean
  readonly timeoutMs: number
  readonly graceMs: number
}

const SPEEDS_MS = [20, 200, Number.POSITIVE_INFINITY]

type Reached = Extract<Line, { readonly kind: "reached" }>

export interface Outcome {
  /** Mutants that some test has noticed. */
  readonly noticed: ReadonlySet<string>
  /** Mutants that some test reaches. */
  readonly reached: ReadonlySet<string>
  /** Mutants that are reached only while files are loaded, which happens once for all tests. */
  readonly loaded: ReadonlySet<string>
}

/**
 * Tries mutants on tests that stay loaded, which is about a hundred times faster than a process for each mutant. A
 * mutant that no test notices here may still be noticed in its own process. The mutant does not affect code that runs
 * once for several tests or in other processes.
 */
export async function tryMutants(
  { files }: Instrumented,
  mutants: ReadonlySet<string>,
  tests: Tests,
): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-mutation-"))
  try {
    const tookMs: Record<string, number> = {}
    const run = (name: string, order: readonly string[]): Run => {
      const task = {
        ...tests,
        tests: order,
        files,
        trials: undefined,
        tookMs,
        log: join(folder, `${name}.log`),
      }
      return new Run(task, join(folder, `${name}.json`))
    }
    const looked = await run("look", tests.tests).look()
    const reached = looked.filter((line) => line.kind === "reached")
    for (const { test, tookMs: ms } of reached) tookMs[test] = ms
    const workers = availableParallelism()
    const parts = Array.from({ length: workers }, async (_, part) => {
      const noticed = new Set<string>()
      const isLeft = (id: string) => mutants.has(id) && Number(id) % workers === part && !noticed.has(id)
      const meet = async (some: readonly Reached[], putsOff: boolean): Promise<readonly Reached[]> => {
        const tried = await run(`try-${part}`, quickestFirst(some)).tryAll(trialsOf(some, isLeft), putsOff)
        for (const id of tried.noticed) noticed.add(id)
        return some.flatMap((each) => {
          const hits = tried.putOff[each.test]
          return hits === undefined ? [] : [{ ...each, hits }]
        })
      }
      const putOff: Reached[] = []
      for (const some of bySpeed(reached)) putOff.push(...(await meet(some, true)))
      await meet(putOff, false)
      return noticed
    })
    const tried = await Promise.all(parts)
    return {
      noticed: new Set(tried.flatMap((noticed) => [...noticed])),
      reached: new Set(reached.flatMap(({ hits }) => Object.keys(hits))),
      loaded: new Set(looked.flatMap((line) => (line.kind === "loaded" ? line.mutants : []))),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Returns groups of tests by speed (quick, slower and slow). One process runs the tests of a file in the order of the
 * file.
 */
function bySpeed(reached: readonly Reached[]): readonly (readonly Reached[])[] {
  return SPEEDS_MS.map((mostMs, index) =>
    reached.filter(({ tookMs }) => tookMs <= mostMs && tookMs > (SPEEDS_MS[index - 1] ?? -1)),
  )
}

/** Returns the test files, sorted by speed, because slow files need only try mutants that no other file noticed. */
function quickestFirst(reached: readonly Reached[]): readonly string[] {
  const tookMs = new Map<string, number>()
  for (const { file, tookMs: ms } of reached) tookMs.set(file, (tookMs.get(file) ?? 0) + ms)
  return [...tookMs].toSorted(([, one], [, other]) => one - other).map(([file]) => file)
}

function trialsOf(reached: readonly Reached[], isWanted: (id: string) => boolean): Hits {
  const trials = reached.map(
    ({ test, hits }) =>
      [test, Object.fromEntries(Object.entries(hits).filter(([id]) => isWanted(id)))] as const,
  )
  return Object.fromEntries(trials.filter(([, hits]) => Object.keys(hits).length > 0))
}
