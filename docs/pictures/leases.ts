import { setImmediate as nextTurn } from "node:timers/promises"
import type { Policy } from "@sluice/core/stores"
import { leasedStore } from "@sluice/scale"
import { check, SERVICE, sharedMemory } from "../../packages/scale/src/testing/shared-memory.ts"
import { chartLine, type Times, timeAxis, xOf } from "./chart.ts"
import { type Diagram, diagram, down } from "./diagram.ts"
import { type Area, curve, gridLine, type Look, text } from "./draw.ts"

/** The service's rule, in a window that is short enough to show each booking. */
export const POLICY: Policy = { ...SERVICE, limit: 2_000, windowMs: 20_000 }
const STEP_MS = 10
const DRAWN_EVERY_MS = 50
/** The requests of a process in each step: some, then a pause, then twice as many. */
const demandAt = (atMs: number): number => (atMs < 1_000 ? 0 : atMs < 7_000 ? 1 : atMs < 10_000 ? 0 : 2)
const TIMES: Times = { endMs: POLICY.windowMs, everyMs: 5_000, label: (atMs) => `${atMs / 1_000} s` }
const FORMAT = new Intl.NumberFormat("en")
const UNITS: Area = { x: 112, y: 20, width: 584, height: 180 }
const HELD: Area = { ...UNITS, y: 232, height: 44 }
const CALLS: Area = { ...UNITS, y: 316, height: 12 }

/** What a process has done up to a time. `counted` is the counter in the shared store. */
export interface Moment {
  readonly atMs: number
  readonly requests: number
  readonly granted: number
  readonly counted: number
  readonly held: number
  readonly returned: number
  /** Calls of the shared store, each for a request or a booking. */
  readonly calls: number
}

/** Runs a process with a lease through one window. */
export async function runLease(): Promise<readonly Moment[]> {
  const { shared, clock, counted, calls } = sharedMemory()
  const startMs = clock.now()
  const store = leasedStore(shared, { clock })
  let [requests, granted] = [0, 0]
  const moments: Moment[] = []
  for (let atMs = 0; atMs < POLICY.windowMs; atMs += STEP_MS) {
    clock.set(startMs + atMs)
    await nextTurn()
    for (let i = 0; i < demandAt(atMs); i++) {
      requests++
      if ((await store.take([check(1, { policy: POLICY })])).granted) granted++
    }
    const { held = 0, returned = 0 } = store.status?.leases ?? {}
    const [inStore, made] = [counted(POLICY), calls.takes.length]
    moments.push({ atMs, requests, granted, counted: inStore, held, returned, calls: made })
  }
  await store.close?.()
  return moments
}

/** Draws the units of a lease through one window. */
export async function drawLease(): Promise<Diagram> {
  const moments = await runLease()
  const end = moments.at(-1) as Moment
  const shown = moments.filter(({ atMs }) => atMs % DRAWN_EVERY_MS === 0)
  const mostHeld = Math.max(...moments.map(({ held }) => held))
  const back = moments.find(({ returned }) => returned > 0) as Moment
  const asked = moments.filter(({ calls }, at) => calls > (moments[at - 1]?.calls ?? 0))
  const [requests, granted, calls] = [end.requests, end.granted, end.calls].map(FORMAT.format)
  const limit = FORMAT.format(POLICY.limit)
  const description =
    `A process with a lease in one window, with a limit of ${limit}. It books units in Redis ahead of its requests, holds at most ` +
    `${mostHeld}, and grants requests from them. In a pause, it gives ${end.returned} unused units back. Near the limit, it books ` +
    `less, more often. Of ${requests} requests, ${granted} are granted, with ${calls} calls to Redis.`
  const x = (atMs: number): number => xOf(atMs, UNITS, TIMES)
  const line = (amountOf: (moment: Moment) => number, area: Area, most: number, look: Look): string =>
    chartLine(
      shown.map((moment) => [moment.atMs, amountOf(moment)]),
      area,
      TIMES,
      most,
      look,
    )
  const label = (y: number, words: string): string => text([UNITS.x - 10, y], words, { anchor: "end" })
  return diagram("leases.svg", { title: "Leases in one window", description, height: 384 }, [
    ...timeAxis({ ...UNITS, height: CALLS.y + CALLS.height - UNITS.y }, TIMES),
    gridLine([UNITS.x, UNITS.y], [UNITS.x + UNITS.width, UNITS.y]),
    label(UNITS.y + 4, `limit ${limit}`),
    line(({ counted }) => counted, UNITS, POLICY.limit, "ours"),
    line(({ granted }) => granted, UNITS, POLICY.limit, "good"),
    text([x(3_000), UNITS.y + 122], "booked in Redis", { look: "ours" }),
    text([x(4_100), UNITS.y + 174], "granted", { look: "good" }),
    text([x(18_500), UNITS.y + 22], "refused", { look: "refused" }),
    label(HELD.y + HELD.height / 2 + 4, "held"),
    line(({ held }) => held, HELD, mostHeld, "goal"),
    text([x(back.atMs), HELD.y + HELD.height + 18], `${end.returned} given back`, { look: "goal" }),
    label(CALLS.y + 11, "calls to Redis"),
    ...asked.map(({ atMs }) => curve(down(x(atMs), CALLS.y, CALLS.y + CALLS.height), "others")),
    text([UNITS.x, CALLS.y + 52], `${requests} requests, ${granted} granted, ${calls} calls to Redis`, {
      anchor: "start",
    }),
  ])
}
