import { type Times, timeAxis, xOf } from "./chart.ts"
import { type Diagram, diagram } from "./diagram.ts"
import { type Area, dot, text } from "./draw.ts"
import { type Call, JOBS, RETRY_MS, RULE, runCalls } from "./paced-run.ts"

const TIMES: Times = { endMs: 31_000, everyMs: 5_000, label: (atMs) => `${atMs / 1_000} s` }
const DOT_PX = 6

/** Draws the calls of a client without pacing, and of one with pacing, against the same limit. */
export async function drawPacing(): Promise<Diagram> {
  const runs = [await runCalls(false), await runCalls(true)]
  const refused = runs.map((calls) => calls.filter(({ isAdmitted }) => !isAdmitted).length)
  const lastS = runs.map((calls) => Math.round((calls.at(-1)?.atMs ?? 0) / 1_000))
  const areas: readonly Area[] = [
    { x: 24, y: 36, width: 672, height: 30 * DOT_PX + 8 },
    { x: 24, y: 290, width: 672, height: 10 * DOT_PX + 8 },
  ]
  const names = [`fetch, retried after ${RETRY_MS / 1_000} s`, "paced(fetch)"]
  const description =
    `${JOBS} calls for a server with a limit of ${RULE.limit} in ${RULE.window}. If each refused call is repeated after ` +
    `${RETRY_MS / 1_000} second, ${runs[0]?.length} calls are sent in ${lastS[0]} seconds, and ${refused[0]} are refused. ` +
    `With pacing, ${runs[1]?.length} calls are sent in ${lastS[1]} seconds, and ${refused[1]} are refused.`
  return diagram("pacing.svg", { title: "Calls with and without pacing", description, height: 386 }, [
    ...areas.flatMap((area, run) => [
      ...timeAxis(area, TIMES),
      text([area.x, area.y - 12], names[run] ?? "", { anchor: "start", isStrong: true }),
      text([area.x + 200, area.y - 12], `${runs[run]?.length} calls, ${refused[run]} refused`, {
        anchor: "start",
      }),
      ...drawCalls(runs[run] ?? [], area),
    ]),
  ])
}

/** Draws a column of dots for each second, with the admitted calls at its foot. */
function drawCalls(calls: readonly Call[], area: Area): string[] {
  const height = new Map<number, number>()
  return calls
    .toSorted((a, b) => Number(b.isAdmitted) - Number(a.isAdmitted))
    .map(({ atMs, isAdmitted }) => {
      const second = Math.floor(atMs / 1_000)
      const row = height.get(second) ?? 0
      height.set(second, row + 1)
      const x = xOf(second * 1_000 + 500, area, TIMES)
      return dot([x, area.y + area.height - 5 - row * DOT_PX], isAdmitted ? "good" : "refused", {
        isHollow: !isAdmitted,
      })
    })
}
