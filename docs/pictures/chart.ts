import { type Area, curve, gridLine, type Look, text } from "./draw.ts"

/** The times of a chart: the last one, the time between two lines, and the label of a line. */
export interface Times {
  readonly endMs: number
  readonly everyMs: number
  label(atMs: number): string
}

/** Returns the x of a time in an area whose left edge is 0. */
export function xOf(atMs: number, { x, width }: Area, { endMs }: Times): number {
  return rounded(x + (atMs / endMs) * width)
}

/** Returns the y of an amount in an area whose lower edge is 0. */
export function yOf(amount: number, { y, height }: Area, most: number): number {
  return rounded(y + height - (amount / most) * height)
}

/** Draws a line for each time in an area, with labels below. */
export function timeAxis(area: Area, times: Times): string[] {
  const bottom = area.y + area.height
  return Array.from({ length: Math.floor(times.endMs / times.everyMs) + 1 }, (_, i) => {
    const atMs = i * times.everyMs
    const x = xOf(atMs, area, times)
    return gridLine([x, area.y], [x, bottom]) + text([x, bottom + 18], times.label(atMs))
  })
}

/** Draws a line for each amount in an area, with its label on the left, and a unit after it. */
export function amountAxis(area: Area, most: number, amounts: readonly number[], unit = ""): string[] {
  return amounts.map((amount) => {
    const y = yOf(amount, area, most)
    const label = text([area.x - 8, y + 5], amount.toLocaleString("en") + unit, { anchor: "end" })
    return gridLine([area.x, y], [area.x + area.width, y]) + label
  })
}

/** Draws an amount over time, without the points of a level line. */
export function chartLine(
  amounts: readonly (readonly [atMs: number, amount: number])[],
  area: Area,
  times: Times,
  most: number,
  look: Look,
): string {
  const isCorner = (at: number): boolean =>
    amounts[at]?.[1] !== amounts[at - 1]?.[1] || amounts[at]?.[1] !== amounts[at + 1]?.[1]
  const corners = amounts.filter((_, at) => isCorner(at))
  return curve(
    corners.map(([atMs, amount]) => [xOf(atMs, area, times), yOf(amount, area, most)]),
    look,
  )
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}
