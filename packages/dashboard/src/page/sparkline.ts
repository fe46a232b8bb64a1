import { SECONDS } from "../recorder/snapshot.ts"
import type { RuleTimeline } from "./counts.ts"
import { h, type PageContent } from "./element.ts"

const BARS = 60
const HEIGHT = 28

/** Returns a small plot of five minutes, five seconds for each step. The table next to it contains the numbers. */
export function sparkline({ lists: [all = [], admitted = []] }: RuleTimeline): PageContent {
  const [allBars, admittedBars] = [inBars(all), inBars(admitted)]
  const most = Math.max(1, ...allBars)
  return h(
    "svg",
    { class: "spark", viewBox: `0 0 ${BARS} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    h("path", { class: "refused", fill: "url(#hatch)", d: area(allBars, most) }),
    h("path", { class: "admitted", d: area(admittedBars, most) }),
  )
}

function inBars(values: readonly number[]): number[] {
  const bars = Array<number>(BARS).fill(0)
  for (const [i, value] of values.entries()) {
    const bar = Math.floor((i * BARS) / SECONDS)
    bars[bar] = (bars[bar] ?? 0) + value
  }
  return bars
}

/** Returns a path with a step for each value. */
function area(values: readonly number[], most: number): string {
  const steps = values.map((value) => `V${(HEIGHT * (1 - value / most)).toFixed(1)}h1`)
  return `M0 ${HEIGHT}${steps.join("")}V${HEIGHT}Z`
}
