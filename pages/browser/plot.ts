import uPlot from "uplot"

/** Returns a color of the style sheet for the current mode, light or dark. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
}

/** Returns a hatched fill, so that readers can recognize refused requests without seeing colors. */
export function hatched(plot: uPlot): CanvasPattern | string {
  const size = Math.round(6 * devicePixelRatio)
  const tile = document.createElement("canvas")
  tile.width = tile.height = size
  const context = tile.getContext("2d")
  if (context === null) return color("refused-fill")
  context.fillStyle = color("refused-fill")
  context.fillRect(0, 0, size, size)
  context.strokeStyle = color("refused")
  context.lineWidth = devicePixelRatio
  // Draw three lines, so that neighboring tiles join without gaps.
  for (const offset of [-size, 0, size]) {
    context.moveTo(offset, size)
    context.lineTo(offset + size, 0)
  }
  context.stroke()
  return plot.ctx.createPattern(tile, "repeat") ?? color("refused-fill")
}

export const FONT = "12px system-ui, sans-serif"

const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 })

/** Returns a count in short form, such as "97.2K". */
export function compact(value: number): string {
  return COMPACT.format(value)
}

/** Options that all axes share. */
export function axis(options: uPlot.Axis): uPlot.Axis {
  return {
    stroke: () => color("muted"),
    font: FONT,
    grid: { stroke: () => color("rule"), width: 1 },
    ticks: { stroke: () => color("rule"), width: 1, size: 4 },
    border: { show: true, stroke: () => color("muted"), width: 1 },
    ...options,
  }
}

/** The axis of counts, on the left. */
export function countAxis(options: uPlot.Axis = {}): uPlot.Axis {
  const values: uPlot.Axis.DynamicValues = (_plot, splits) =>
    splits.map((value) => (value === null || value % 1 !== 0 ? "" : compact(value)))
  return axis({ size: 48, gap: 4, space: 28, values, ...options })
}

/** Draws a plot as wide as its element. Redraws the plot if the width, the colors or the medium change. */
export function draw(
  target: HTMLElement,
  label: string,
  options: Omit<uPlot.Options, "width" | "height">,
  data: uPlot.AlignedData,
): uPlot {
  // The element has no size while it is empty.
  const content = document.createElement("div")
  target.append(content)
  const size = (): { width: number; height: number } => ({
    width: target.clientWidth,
    height: target.clientHeight,
  })
  const plot = new uPlot({ legend: { show: false }, ...options, ...size() }, data, content)
  plot.ctx.canvas.setAttribute("role", "img")
  plot.ctx.canvas.setAttribute("aria-label", label)
  const removed = new AbortController()
  const { signal } = removed
  const observer = new ResizeObserver(() => {
    if (target.isConnected) {
      plot.setSize(size())
      return
    }
    // Otherwise the other plots and the listeners would keep a plot in memory that has left the page.
    observer.disconnect()
    removed.abort()
    plot.destroy()
  })
  observer.observe(target)
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", () => plot.redraw(false, true), { signal })
  }
  return plot
}

/** Adds a line of text below a plot that shows the values under the pointer. */
export function addReadout(target: HTMLElement): Text {
  const readout = document.createElement("p")
  readout.className = "readout"
  const text = document.createTextNode("")
  readout.append(text)
  target.after(readout)
  return text
}
