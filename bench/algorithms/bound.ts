import { startServer } from "../redis/server.ts"
import { printTable } from "../report/table.ts"
import { playAdversary, type Worst } from "./adversary.ts"
import { searchAll } from "./exhaustive.ts"
import { KINDS, type Kind } from "./kinds.ts"
import { LIVE_SIZE, playLive } from "./live.ts"
import type { Admission } from "./most-in.ts"
import { playOutflow } from "./outflow.ts"

const SEED = 20_240_101
const STRICT = "sliding-window-strict"

/** Sizes that are small enough for trying every possible sequence of requests. */
const SMALL = [
  { limit: 3, windowMs: 7, buckets: 3, burst: 2 },
  { limit: 4, windowMs: 6, buckets: 2, burst: 4 },
]

/** The worst cases of one kind that each search method found. The bounds are in the same order in each list. */
export interface Found {
  readonly kind: Kind
  readonly all: readonly Worst[]
  readonly random: readonly Worst[]
  readonly live: readonly Worst[]
}

/** The effort of a search: the number of requests of the random clients, and of windows of the live clients. */
interface Effort {
  readonly steps: number
  readonly strictSteps: number
  readonly windows: number
}

/** The worst cases of all kinds. */
export interface Bounds {
  readonly found: readonly Found[]
  /** Number of histories for which every continuation was tried. */
  readonly pasts: number
}

/**
 * Prints the most units that each algorithm admitted, in virtual time and with a real Redis, next to the guaranteed
 * bounds.
 */
export async function measureBound(isQuick: boolean): Promise<unknown> {
  const steps = isQuick ? 100_000 : 1_000_000
  const effort = { steps, strictSteps: isQuick ? steps : 10_000_000, windows: isQuick ? 6 : 24 }
  const { found, pasts } = await findWorst(effort)
  const outflow = await playOutflow(steps / 10, SEED)
  const title = [
    "the most that was admitted",
    `all: each of ${pasts} pasts that a client can have under limits of ${SMALL.map(({ limit }) => limit).join(" and ")}`,
    `random: a greedy client, ${steps} requests, ${effort.strictSteps} of the strict window, with seed ${SEED}`,
    `live: a greedy client of Redis, ${LIVE_SIZE.limit} in ${LIVE_SIZE.windowMs} ms, ${effort.windows} windows`,
  ].join("\n  ")
  printTable(
    title,
    ["", "in", "at most", "all", "random", "live", ""],
    [...found.flatMap(rowsOf), outflowRow(outflow)],
  )
  for (const { kind, all, random, live } of found)
    for (const worst of [...all, ...random, ...live])
      if (worst.most > worst.allowed) printTrace(`${kind.name}, ${worst.bound.of}`, worst)
  return { seed: SEED, found, outflow }
}

/** Finds the worst cases of each kind by each search method. */
export async function findWorst({ steps, strictSteps, windows }: Effort): Promise<Bounds> {
  const found: Found[] = []
  let pasts = 0
  const server = await startServer()
  try {
    for (const kind of KINDS) {
      const searched = SMALL.map((size) => searchAll(kind, size))
      pasts += searched.reduce((sum, one) => sum + one.pasts, 0)
      const random = playAdversary(kind, kind.name === STRICT ? strictSteps : steps, SEED)
      const live = await playLive(kind, server.port, windows)
      found.push({ kind, all: searched.flatMap(({ worst }) => worst), random, live })
    }
  } finally {
    await server.stop()
  }
  return { found, pasts }
}

function rowsOf({ kind, all, random, live }: Found): string[][] {
  return kind.bounds.map((bound, i) => {
    // Each exhaustive search returns one result per bound, in the order of the bounds.
    const searched = all.filter((_, at) => at % kind.bounds.length === i)
    const every = [...searched, random[i] as Worst, live[i] as Worst]
    return [
      i === 0 ? kind.name : "",
      bound.of,
      bound.says,
      searched.map(shown).join(", "),
      shown(random[i] as Worst),
      shown(live[i] as Worst),
      every.every(({ most, allowed }) => most <= allowed) ? "met" : "MISSED",
    ]
  })
}

function outflowRow({ most, allowed, leastGapMs, evenGapMs }: Awaited<ReturnType<typeof playOutflow>>) {
  const isMet = most <= allowed && leastGapMs >= evenGapMs
  const gap = `${most} of ${allowed}, ${leastGapMs} ms apart`
  return ["  goes on, held for its delay", "any W", "L, evenly", "", gap, "", isMet ? "met" : "MISSED"]
}

function shown({ most, allowed }: Worst): string {
  return `${most} of ${allowed}`
}

function printTrace(
  name: string,
  { size, most, allowed, trace }: Pick<Worst, "size" | "most" | "allowed" | "trace">,
): void {
  const came = trace.map(({ atMs, units }: Admission) => `${units} at ${atMs}`).join(", ")
  console.log(`MISSED  ${name}: ${most} of at most ${allowed} with ${JSON.stringify(size)}: ${came}`)
}
