import uPlot from "uplot"
import {
  addReadout,
  axis,
  color,
  compact,
  countAxis,
  draw,
  FONT,
  hatched,
} from "../../../../../pages/browser/plot.ts"
import { count, counted } from "../../quantities.ts"
import { ratio } from "../format.ts"
import type { PageData } from "../page-data.ts"
import { binLabel, limitPosition, type PeakBin, peakBins } from "../peak-bins.ts"

/** Draws the histogram of the peaks of a rule's clients, with the limit as a line. */
export function drawPeaks(target: HTMLElement, { name, peaks }: PageData["rules"][number]): void {
  const bins = peakBins(peaks)
  const over = bins.reduce((sum, { clients, isOver }) => sum + (isOver ? clients : 0), 0)
  const readout = addReadout(target)
  const summary = `${counted(over, "client")} above the limit`
  readout.data = summary
  const bars = (colorName: string, fill: uPlot.Series.Fill): uPlot.Series => {
    const paths = uPlot.paths.bars?.({ size: [1, Number.POSITIVE_INFINITY], gap: 2, align: 1 })
    return {
      stroke: () => color(colorName),
      width: 1,
      fill,
      points: { show: false },
      ...(paths && { paths }),
    }
  }
  const labels: uPlot.Axis.DynamicValues = (_plot, splits) =>
    splits.map((edge) => (edge === 0 ? "0" : ratioAt(bins, edge)))
  draw(
    target,
    `Clients of ${name} by their peak: ${summary}. The table below contains all values.`,
    {
      padding: [18, 12, 0, 0],
      scales: {
        x: { time: false, range: [0, bins.length] },
        // The scale is linear near 0 and logarithmic above, so that single clients are visible next to thousands.
        y: { distr: 4, asinh: 1, range: (_plot, _min, max) => [0, Math.max(max, 1) * 1.5] },
      },
      axes: [
        axis({ values: labels, incrs: [1, 2, 3, 4, 6], space: 36, gap: 4, size: 28, grid: { show: false } }),
        countAxis({ splits: (_plot, _axis, _min, max) => powersOfTen(max) }),
      ],
      series: [{}, bars("admitted", () => color("admitted-fill")), bars("refused", hatched)],
      cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
      hooks: {
        draw: [(plot) => drawCounts(plot, bins), (plot) => drawLimit(plot, limitPosition(bins))],
        setCursor: [
          (plot) => {
            const { left = -1 } = plot.cursor
            const bin = left < 0 ? undefined : bins[Math.floor(plot.posToVal(left, "x"))]
            readout.data = bin === undefined ? summary : `${binLabel(bin)}: ${counted(bin.clients, "client")}`
          },
        ],
      },
    },
    [
      [...bins.keys()],
      bins.map(({ clients, isOver }) => (isOver || clients === 0 ? null : clients)),
      bins.map(({ clients, isOver }) => (isOver && clients > 0 ? clients : null)),
    ],
  )
}

/**
 * Returns the positions of lines on the axis of clients: 0, 1, 10, 100 and so on. Omits 1 if its label would cover
 * the 0.
 */
function powersOfTen(max: number): number[] {
  const powers = Array.from({ length: Math.floor(Math.log10(max)) + 1 }, (_, i) => 10 ** i)
  return [0, ...powers.slice(max > 100 ? 1 : 0)]
}

function ratioAt(bins: readonly PeakBin[], edge: number): string {
  const upTo = bins[edge - 1]?.upTo
  return upTo === undefined ? "" : ratio(upTo)
}

/** Draws the limit as a dashed line with a label. */
function drawLimit(plot: uPlot, position: number): void {
  const { ctx, bbox } = plot
  const x = Math.round(plot.valToPos(position, "x", true))
  ctx.save()
  ctx.strokeStyle = ctx.fillStyle = color("limit")
  ctx.lineWidth = 2 * devicePixelRatio
  ctx.setLineDash([6 * devicePixelRatio, 3 * devicePixelRatio])
  ctx.beginPath()
  ctx.moveTo(x, bbox.top)
  ctx.lineTo(x, bbox.top + bbox.height)
  ctx.stroke()
  ctx.font = `600 ${scaled(FONT)}`
  ctx.textAlign = "center"
  ctx.textBaseline = "bottom"
  ctx.fillText("limit", x, bbox.top - 2 * devicePixelRatio)
  ctx.restore()
}

/** Draws the number of clients above each bar that is wide enough for the number. */
function drawCounts(plot: uPlot, bins: readonly PeakBin[]): void {
  const { ctx } = plot
  ctx.save()
  ctx.fillStyle = color("ink")
  ctx.font = scaled(FONT.replace("12", "11"))
  ctx.textAlign = "center"
  ctx.textBaseline = "bottom"
  const width = plot.valToPos(1, "x", true) - plot.valToPos(0, "x", true)
  bins.forEach(({ clients }, i) => {
    const fits = (text: string): boolean => ctx.measureText(text).width <= width - 2
    const text = [count(clients), compact(clients)].find(fits)
    if (clients === 0 || text === undefined) return
    ctx.fillText(text, plot.valToPos(i + 0.5, "x", true), plot.valToPos(clients, "y", true) - 2)
  })
  ctx.restore()
}

/** Returns a font whose size is in pixels of the canvas. */
function scaled(font: string): string {
  return font.replace(/\d+/, (size) => String(Number(size) * devicePixelRatio))
}
