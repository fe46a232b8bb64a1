import { relative } from "node:path"
import type { Mutant } from "@stryker-mutator/api/core"
import { ROOMS, type Room } from "./rooms.ts"
import { type Instrumented, instrument } from "./switched/instrument.ts"
import { tryMutants } from "./switched/try-mutants.ts"
import { tryAlone } from "./try-alone.ts"

/** Milliseconds after which a test without mutants fails if it has not ended. */
const TIMEOUT_MS = 120_000
/** Milliseconds that a test with a mutant may take in addition to a multiple of its usual time. */
const GRACE_MS = 1_000

/**
 * Mutates a room, one change at a time. First, all mutants run against the tests of the room in processes that stay
 * loaded. Then each remaining mutant runs again in separate processes. Prints every mutant that no test noticed, and
 * the score of each file. Returns true if all mutants were noticed.
 *
 * `only` selects files of the room by the end of their path, optionally with lines, as in
 * "algorithms/exact-counts.ts:20-40". If `only` is empty, the whole room is mutated.
 */
export async function mutateRoom(name: string, only: readonly string[]): Promise<boolean> {
  const room = ROOMS[name]
  if (room === undefined) throw new RangeError(`no room ${name}: there are ${Object.keys(ROOMS).join(", ")}`)
  const places = only.map(placeOf)
  const instrumented = await instrument(room.mutate)
  const mutants = instrumented.mutants.filter(
    (mutant) => mutant.status === undefined && isAsked(mutant, places),
  )
  if (mutants.length === 0) throw new RangeError(`no mutants of ${only.join(", ")} in room ${name}`)
  console.log(`${mutants.length} mutants in ${instrumented.files.length} files`)
  const { left, valid } = await trySwitched(room, instrumented, mutants)
  const alone = left.length === 0 ? [] : await tryAlone(name, left)
  printScores(valid, alone)
  return alone.length === 0
}

/** Returns all mutants that are worth trying, and those of them that no test noticed in one process. */
async function trySwitched(
  { tests, needsRedis }: Room,
  instrumented: Instrumented,
  mutants: readonly Mutant[],
): Promise<{ readonly left: readonly Mutant[]; readonly valid: readonly Mutant[] }> {
  const { reached, loaded, noticed } = await tryMutants(instrumented, new Set(mutants.map(({ id }) => id)), {
    tests,
    needsRedis,
    timeoutMs: TIMEOUT_MS,
    graceMs: GRACE_MS,
  })
  // Omit code that runs only once, when a file is loaded, such as tables and constants. Every test would run with
  // such a mutant, so a test would notice it.
  const valid = mutants.filter(({ id }) => reached.has(id) || !loaded.has(id))
  const left = valid.filter(({ id }) => !noticed.has(id))
  console.log(`${left.length} are left`)
  return { left, valid }
}

interface Place {
  readonly path: string
  readonly from: number
  readonly to: number
}

function placeOf(text: string): Place {
  const [path = "", lines] = text.split(":")
  const [from = 1, to = from] = lines?.split("-").map(Number) ?? [1, Number.POSITIVE_INFINITY]
  return { path: `/${path}`, from, to }
}

function isAsked({ fileName, location }: Mutant, places: readonly Place[]): boolean {
  // Add 1, because Stryker counts lines from 0 here.
  const [first, last] = [location.start.line + 1, location.end.line + 1]
  const isIn = ({ path, from, to }: Place) => fileName.endsWith(path) && first >= from && last <= to
  return places.length === 0 || places.some(isIn)
}

function printScores(valid: readonly Mutant[], left: readonly Mutant[]): void {
  const count = (some: readonly Mutant[], file: string) =>
    some.filter(({ fileName }) => fileName === file).length
  for (const file of [...new Set(valid.map(({ fileName }) => fileName))].toSorted()) {
    const [all, missed] = [count(valid, file), count(left, file)]
    console.log(`${percent(all - missed, all)} ${all - missed}/${all} ${relative(process.cwd(), file)}`)
  }
  const noticed = valid.length - left.length
  console.log(`${percent(noticed, valid.length)}: ${noticed} of ${valid.length} mutants were noticed; left:`)
  for (const { fileName, location, mutatorName, replacement } of left) {
    const { line, column } = location.start
    const place = `${relative(process.cwd(), fileName)}:${line + 1}:${column + 1}`
    console.log(`  ${place} ${mutatorName} -> ${replacement}`)
  }
}

function percent(part: number, whole: number): string {
  return `${(Math.floor((1_000 * part) / whole) / 10).toFixed(1)} %`
}
