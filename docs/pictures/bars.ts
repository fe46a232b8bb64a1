import { gridLine, type Look, type Style, text } from "./draw.ts"

/** A bar from 0 to `least`. A pale bar continues it to `most`. */
export interface Bar {
  readonly name: string
  readonly least: number
  readonly most: number
  /** The values in words, at the right edge. */
  readonly words: string
  readonly look: Look
  readonly goal?: { readonly value: number; readonly words: string } | undefined
}

/** Bars under one name. */
export interface BarGroup {
  readonly name: string
  readonly bars: readonly Bar[]
}

/** The values of a chart with bars. */
export interface Scale {
  /** The quantity and its unit. */
  readonly title: string
  /** The meaning of the colors, below the title. */
  readonly note: string
  /** The value at the left edge of a logarithmic axis. Absent if the axis is linear and begins at 0. */
  readonly least?: number
  readonly most: number
  readonly ticks: readonly (readonly [value: number, label: string])[]
}

const TOP = 62
const NOTE_Y = 44
const ROW = 22
const GAP = 10
const GROUP_X = 16
const NAME_X = 164
const BARS_X = 310
const BARS_WIDTH = 250
const VALUE_X = 640
const GOAL_X = 704

/** The colors of bars, which `picture` needs in addition to those of diagrams. */
export const BAR_STYLE: Style = {
  ".bar.ours": ["fill:#0969da", "fill:#4493f8"],
  ".bar.others": ["fill:#818b98", "fill:#7d8590"],
  ".bar.refused": ["fill:#cf222e", "fill:#f85149"],
  ".bar.goal": ["fill:#bf8700", "fill:#d29922"],
  ".bar.pale": ["opacity:.45", "opacity:.45"],
}

/** Returns the height of a picture of bars. */
export function heightOf(groups: readonly BarGroup[]): number {
  const rows = groups.reduce((sum, { bars }) => sum + bars.length, 0)
  return TOP + rows * ROW + groups.length * GAP + 26
}

/** Draws horizontal bars in groups, with their values and goals at the right. */
export function drawBars(
  groups: readonly BarGroup[],
  { title, note, least: start, most, ticks }: Scale,
): string[] {
  const shareOf = (value: number): number =>
    start === undefined ? value / most : Math.log(value / start) / Math.log(most / start)
  const xOf = (value: number): number => Math.round((BARS_X + shareOf(value) * BARS_WIDTH) * 10) / 10
  const left = xOf(start ?? 0)
  const bottom = heightOf(groups) - 26
  let top = TOP
  const drawn = groups.flatMap(({ name, bars }) => {
    const rows = bars.flatMap((bar, at) => {
      const y = top + at * ROW
      const baseline = y + 15
      const { least, most: longest, look, words, goal } = bar
      return [
        text([NAME_X, baseline], bar.name, { anchor: "start" }),
        rect(`bar ${look}`, left, y + 3, xOf(least) - left, 14),
        ...(longest > least
          ? [rect(`bar pale ${look}`, xOf(least), y + 3, xOf(longest) - xOf(least), 14)]
          : []),
        text([VALUE_X, baseline], words, { anchor: "end", ...(look === "refused" && { look }) }),
        ...(goal === undefined
          ? []
          : [
              rect("bar goal", xOf(goal.value) - 1.5, y, 3, 20),
              text([GOAL_X, baseline], goal.words, { anchor: "end", look: "goal" }),
            ]),
      ]
    })
    const group = text([GROUP_X, top + 15], name, { anchor: "start", isStrong: true })
    top += bars.length * ROW + GAP
    return [group, ...rows]
  })
  const hasGoals = groups.some(({ bars }) => bars.some(({ goal }) => goal !== undefined))
  return [
    text([GROUP_X, 24], title, { anchor: "start", isStrong: true }),
    text([GROUP_X, NOTE_Y], note, { anchor: "start" }),
    ...(hasGoals ? [text([GOAL_X, NOTE_Y], "goal", { anchor: "end", look: "goal" })] : []),
    ...ticks.flatMap(([value, label]) => [
      gridLine([xOf(value), TOP - 4], [xOf(value), bottom]),
      text([xOf(value), bottom + 18], label),
    ]),
    ...drawn,
  ]
}

function rect(names: string, x: number, y: number, width: number, height: number): string {
  const rounded = (value: number): number => Math.round(value * 10) / 10
  return `<rect class="${names}" x="${rounded(x)}" y="${y}" width="${rounded(width)}" height="${height}"/>`
}
