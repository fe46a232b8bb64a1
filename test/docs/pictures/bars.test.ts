import { describe, expect, it } from "vitest"
import { readFigures } from "../../../bench/figures/figures.ts"
import { type Bar, drawBars } from "../../../docs/pictures/bars.ts"
import { drawFigures } from "../../../docs/pictures/figures.ts"

const SCALE = { title: "Speed", note: "", most: 100, ticks: [] }
const bar = (more: Partial<Bar>): Bar => ({
  name: "a",
  least: 50,
  most: 50,
  words: "50",
  look: "ours",
  ...more,
})

/** Returns the left edge and the width of the rectangles with this class. */
function rectsOf(svg: string, names: string): [x: number, width: number][] {
  const found = svg.matchAll(
    new RegExp(`<rect class="${names}" x="([\\d.]+)" y="[\\d.]+" width="([\\d.]+)"`, "g"),
  )
  return [...found].map(([, x, width]) => [Number(x), Number(width)])
}
const draw = (...bars: readonly Bar[]): string => drawBars([{ name: "group", bars }], SCALE).join("\n")

describe("drawBars", () => {
  it("draws a bar up to the least value, and a pale bar up to the greatest value", () => {
    const svg = draw(bar({ least: 40, most: 80 }), bar({ least: 20, most: 20 }))
    const [[, forty], [, twenty]] = rectsOf(svg, "bar ours") as [[number, number], [number, number]]
    expect(forty / twenty).toBeCloseTo(2)
    const pale = rectsOf(svg, "bar pale ours")
    expect(pale).toHaveLength(1)
    expect(pale[0]?.[1]).toBeCloseTo(forty)
    expect(pale[0]?.[0]).toBeCloseTo((rectsOf(svg, "bar ours")[0]?.[0] ?? 0) + forty)
  })

  it("draws bars in proportion to the logarithms of their values on a logarithmic axis", () => {
    const bars = [1, 10, 100].map((value) => bar({ least: value, most: value }))
    const svg = drawBars([{ name: "group", bars }], { ...SCALE, least: 1 }).join("\n")
    const [none, half, whole] = rectsOf(svg, "bar ours").map(([, width]) => width)
    expect([none, whole]).toEqual([0, 2 * (half ?? 0)])
  })

  it("marks a goal at its value, and a missed goal in red", () => {
    const svg = draw(bar({ look: "refused", goal: { value: 50, words: "≥ 50" } }))
    const [[left, width]] = rectsOf(svg, "bar refused") as [[number, number]]
    const [[goal, thickness]] = rectsOf(svg, "bar goal") as [[number, number]]
    expect(goal + thickness / 2).toBeCloseTo(left + width)
    expect(svg).toContain(">≥ 50</text>")
    expect(svg).toContain('class="refused"')
  })
})

describe.each(Object.entries(readFigures().charts))("the chart %s of the figures", (name, figures) => {
  const svg = drawFigures().find(({ file }) => file === `figures-${name}.svg`)?.svg ?? ""

  it("contains a bar for each figure in bench/figures.json, and a mark for each goal", () => {
    const looks = ["ours", "others", "refused"].flatMap((look) => rectsOf(svg, `bar ${look}`))
    expect(looks).toHaveLength(figures.length)
    expect(rectsOf(svg, "bar goal")).toHaveLength(figures.filter(({ goal }) => goal !== undefined).length)
  })

  it("contains a red bar for each missed goal, and no other red bar", () => {
    expect(rectsOf(svg, "bar refused")).toHaveLength(
      figures.filter(({ missed }) => missed !== undefined).length,
    )
  })
})
