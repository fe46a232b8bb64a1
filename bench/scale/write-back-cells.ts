import type { Cell } from "./cells.ts"
import { Counter, Pending, policyOf, WINDOW_MS } from "./counter.ts"
import { START_MS, Timeline } from "./timeline.ts"
import { equalShares, spread } from "./traffic.ts"
import { Grants } from "./worst-window.ts"

const LIMIT = 100_000
const ONE_WAY_MS = 0.5

const TRAFFICS = [
  { name: "1.2 L", units: 3 * 1.2 * LIMIT, durationMs: 3 * WINDOW_MS },
  { name: "5 L", units: 3 * 5 * LIMIT, durationMs: 3 * WINDOW_MS },
  { name: "10 L in 1 s", units: 10 * LIMIT, durationMs: 1_000 },
  { name: "10 L in 50 ms", units: 10 * LIMIT, durationMs: 50 },
]

/** The table of the plan. For each kind of traffic, it contains the figures for 4 and for 16 processes. */
const ROWS: readonly { readonly settleMs: number; readonly worst: readonly (readonly [number, number])[] }[] =
  [
    {
      settleMs: 10,
      worst: [
        [1, 1],
        [1.01, 1.01],
        [1.09, 1.12],
        [2.8, 3.3],
      ],
    },
    {
      settleMs: 100,
      worst: [
        [1.01, 1.02],
        [1.07, 1.06],
        [1.78, 1.97],
        [4, 9.5],
      ],
    },
    {
      settleMs: 1_000,
      worst: [
        [1.14, 1.18],
        [1.64, 1.65],
        [4, 8.1],
        [4, 10],
      ],
    },
  ]

/**
 * A process that decides by the last known state of the shared counter, plus the units that it has granted since
 * then.
 */
class WriteBackProcess {
  readonly #shared: Counter
  readonly #timeline: Timeline
  /** The known state plus the pending units. */
  readonly #view = new Counter(policyOf(LIMIT))
  readonly #pending = new Pending()

  constructor(shared: Counter, timeline: Timeline) {
    this.#shared = shared
    this.#timeline = timeline
  }

  take(nowMs: number): boolean {
    const after = this.#view.take(1, nowMs)
    if (after === undefined) return false
    this.#pending.add(1, after)
    return true
  }

  /** Charges the pending units. When the reply has arrived, requests the shared state and stores it. */
  settle(): void {
    const charged = this.#pending.removeAll()
    this.#call(
      (serverMs) => {
        for (const taken of charged) this.#shared.charge(taken, serverMs)
      },
      () =>
        this.#call(
          (serverMs) => this.#shared.at(serverMs),
          (known) => {
            this.#view.learn(known)
            for (const taken of this.#pending.all) this.#view.charge(taken, Math.floor(this.#timeline.nowMs))
          },
        ),
    )
  }

  /** Runs the work at the server. Calls `done` with the result when the reply arrives. */
  #call<Result>(work: (serverMs: number) => Result, done: (result: Result) => void): void {
    this.#timeline.after(ONE_WAY_MS, () => {
      const result = work(Math.floor(this.#timeline.nowMs))
      this.#timeline.after(ONE_WAY_MS, () => done(result))
    })
  }
}

/** Simulates write-back by 4 and 16 processes, and returns the most units in any window, divided by the limit. */
export async function writeBackCells(seed: number): Promise<readonly Cell[]> {
  const cells: Cell[] = []
  for (const { settleMs, worst } of ROWS) {
    for (const [i, traffic] of TRAFFICS.entries()) {
      for (const [n, processes] of [4, 16].entries()) {
        const name = `settleMs ${settleMs}, ${processes} processes, ${traffic.name}`
        const most = (await simulate(traffic, processes, settleMs, seed)).mostIn(WINDOW_MS)
        cells.push({ name, figure: "worst / L", planned: worst[i]?.[n] as number, run: most / LIMIT })
      }
    }
  }
  return cells
}

/** Returns the units that all processes grant. */
async function simulate(
  { units, durationMs }: (typeof TRAFFICS)[0],
  count: number,
  settleMs: number,
  seed: number,
): Promise<Grants> {
  const timeline = new Timeline()
  const grants = new Grants(START_MS)
  const shared = new Counter(policyOf(LIMIT))
  const processes = Array.from({ length: count }, () => new WriteBackProcess(shared, timeline))
  for (const [i, process] of processes.entries()) timeline.every(settleMs, i / count, () => process.settle())
  const arrivals = spread(units / durationMs, equalShares(count), seed)
  for (let atMs = START_MS; atMs < START_MS + durationMs; atMs++) {
    await timeline.until(atMs)
    for (const [i, process] of processes.entries()) {
      for (let left = arrivals[i]?.until(atMs + 1) ?? 0; left > 0; left--) {
        if (process.take(atMs)) grants.add(atMs, 1)
      }
    }
  }
  return grants
}
