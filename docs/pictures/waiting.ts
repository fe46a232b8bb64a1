import { setImmediate as nextTurn } from "node:timers/promises"
import { createLimiter } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { amountAxis, chartLine, type Times, timeAxis, xOf, yOf } from "./chart.ts"
import { type Diagram, diagram } from "./diagram.ts"
import { type Area, type Look, text } from "./draw.ts"

const LINE = { limit: 10, window: "1 second", algorithm: "token-bucket" } as const
const MAX_WAIT_MS = 2_000
/** The calls that come at the same time. */
const BURSTS: readonly (readonly [atMs: number, calls: number])[] = [
  [0, 35],
  [4_000, 15],
]
const STEP_MS = 10
const TIMES: Times = {
  endMs: 5_000,
  everyMs: 1_000,
  label: (atMs) => (atMs === 0 ? "0" : `${atMs / 1_000} s`),
}
const AREA: Area = { x: 52, y: 20, width: 548, height: 220 }
const MOST = 50

/** The calls since the start, by their outcome at one time. */
export interface Calls {
  readonly atMs: number
  readonly called: number
  readonly admitted: number
  readonly refused: number
}

/** Calls `acquire` in two bursts. Returns the numbers of calls after each step of the clock. */
export async function runWaiting(): Promise<readonly Calls[]> {
  const clock = manualClock(0)
  const limiter = createLimiter<{ supplier: string }>({
    ...LINE,
    field: "supplier",
    fields: { supplier: (call) => call.supplier },
    clock,
  })
  let [called, admitted, refused] = [0, 0, 0]
  const steps: Calls[] = []
  for (; clock.now() <= TIMES.endMs; clock.advance(STEP_MS)) {
    const [, calls = 0] = BURSTS.find(([atMs]) => atMs === clock.now()) ?? []
    for (let call = 0; call < calls; call++) {
      limiter.acquire({ supplier: "acme" }, { maxWaitMs: MAX_WAIT_MS }).then(
        () => void admitted++,
        () => void refused++,
      )
    }
    called += calls
    await nextTurn()
    steps.push({ atMs: clock.now(), called, admitted, refused })
  }
  await limiter.close()
  return steps
}

/** Draws how calls wait in line for a token bucket. */
export async function drawWaiting(): Promise<Diagram> {
  const calls = await runWaiting()
  const [first, last] = [calls[0], calls.at(-1)] as [Calls, Calls]
  const waiting = ({ called, admitted, refused }: Calls): number => called - admitted - refused
  const [[, burst], [, second]] = BURSTS as readonly [(typeof BURSTS)[0], (typeof BURSTS)[0]]
  const description =
    `With a limit of ${LINE.limit} per second, ${burst} calls of acquire come at 0 s, and ${second} at ` +
    `${(BURSTS[1]?.[0] ?? 0) / 1_000} s. ${first.admitted} are admitted immediately, the others one after the other. ` +
    `${last.refused} of ${last.called} are refused after ${MAX_WAIT_MS / 1_000} s, their maxWaitMs.`
  const series: readonly (readonly [string, Look, (calls: Calls) => number])[] = [
    ["called", "others", ({ called }) => called],
    ["admitted", "good", ({ admitted }) => admitted],
    ["refused", "refused", ({ refused }) => refused],
    ["waiting", "ours", waiting],
  ]
  const note = (atMs: number, lines: readonly string[], anchor: "start" | "end"): string[] =>
    lines.map((line, row) => {
      const x = xOf(atMs, AREA, TIMES) + (anchor === "start" ? 8 : -8)
      return text([x, yOf(20, AREA, MOST) + 17 + row * 18], line, { anchor })
    })
  return diagram("waiting.svg", { title: "Calls that wait in line", description, height: 280 }, [
    ...timeAxis(AREA, TIMES),
    ...amountAxis(AREA, MOST, [0, 10, 20, 30, 40, 50]),
    ...note(MAX_WAIT_MS, ["maxWaitMs", "is over"], "start"),
    ...note(BURSTS[1]?.[0] ?? 0, [`${LINE.limit} units`, "are back"], "end"),
    ...series.flatMap(([name, look, count]) => [
      chartLine(
        calls.map((each) => [each.atMs, count(each)]),
        AREA,
        TIMES,
        MOST,
        look,
      ),
      text([AREA.x + AREA.width + 10, yOf(count(last), AREA, MOST) + 5], `${count(last)} ${name}`, {
        anchor: "start",
        ...(look !== "others" && { look }),
      }),
    ]),
  ])
}
