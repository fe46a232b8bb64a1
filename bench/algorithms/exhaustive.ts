import type { CounterState } from "@sluice/core/stores"
import { type Worst, watch, worseOf } from "./adversary.ts"
import { Counter, START_MS } from "./counter.ts"
import { type Kind, policyOf, type Size, wholeSize } from "./kinds.ts"
import type { Admission } from "./most-in.ts"

export interface Searched {
  readonly worst: readonly Worst[]
  /** Number of different histories that a client could have, summed over all instants. */
  readonly pasts: number
}

/** The units that a client was granted, and the state of its counter. */
interface Past {
  readonly admissions: readonly Admission[]
  readonly state: CounterState | undefined
}

/**
 * Number of windows in a search. The first window fills the counter, two more may affect it, and the fourth is
 * judged.
 */
const WINDOWS = 4

/**
 * Tries every sequence of grants that a client can get within four windows, in steps of a millisecond. At each
 * instant, the search takes each number of units that the counter admits. A refused request takes nothing, so
 * refusals need not be tried. Two histories are searched only once if they end with the same state of the counter and
 * differ only in admissions older than a window.
 */
export function searchAll(kind: Kind, size: Size): Searched {
  const whole = wholeSize(kind, size)
  const counter = new Counter(policyOf(kind, whole))
  let worst = watch(kind, whole).worst()
  let pasts = 0
  let alive: readonly Past[] = [{ admissions: [], state: undefined }]
  const endsMs = START_MS + WINDOWS * whole.windowMs
  for (let nowMs = START_MS; nowMs < endsMs; nowMs++) {
    const next = new Map<string, Past>()
    const keep = (past: Past): void => {
      next.set(nameOf(past, nowMs, whole.windowMs), past)
    }
    for (const past of alive) {
      keep(past)
      for (const { units, state } of takesAt(counter, past, nowMs)) {
        const after = { admissions: [...past.admissions, { atMs: nowMs, units }], state }
        worst = worseOf(worst, worstOf(kind, whole, after))
        keep(after)
      }
    }
    alive = [...next.values()]
    pasts += alive.length
  }
  return { worst, pasts }
}

/** Returns the state of the counter after 1, 2, 3 … units were taken at `nowMs`, up to the first refusal. */
function takesAt(counter: Counter, { admissions }: Past, nowMs: number) {
  counter.reset()
  for (const { atMs, units } of admissions) {
    if (!counter.take(atMs, units).granted) throw new Error("What was admitted once is refused the next time")
  }
  const takes: { readonly units: number; readonly state: CounterState }[] = []
  for (let units = 1; ; units++) {
    const { granted, state } = counter.take(nowMs, 1)
    if (!granted) return takes
    takes.push({ units, state })
  }
}

function worstOf(kind: Kind, size: Required<Size>, { admissions }: Past): readonly Worst[] {
  const watched = watch(kind, size)
  for (const admission of admissions) watched.add(admission)
  return watched.worst()
}

function nameOf({ admissions, state }: Past, nowMs: number, windowMs: number): string {
  const recent = admissions.filter(({ atMs }) => atMs > nowMs - windowMs)
  return JSON.stringify([state, recent.map(({ atMs, units }) => [atMs, units])])
}
