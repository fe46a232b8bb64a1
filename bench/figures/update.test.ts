import { describe, expect, it } from "vitest"
import type { Measurement } from "../overview/measurement.ts"
import { type BarFigure, type Figures, readFigures } from "./figures.ts"
import { updateFigures } from "./update.ts"

const RUN = { command: "bench --figures", machine: "two cores", date: "2030-01-02", commit: "0123abcd" }
const figures = readFigures()

function measurement(bar: BarFigure, least: number, most = least): Measurement {
  const { from } = bar
  return { ...from, isOurs: true, median: least, least, most, samples: 3 } as unknown as Measurement
}

function barOf({ charts }: Figures, chart: "memory" | "throughput", name: string, group = ""): BarFigure {
  return charts[chart].find((bar) => bar.name === name && bar.group.startsWith(group)) as BarFigure
}

describe("updateFigures", () => {
  it("replaces the figures that bench has measured, and names the run", () => {
    const ours = barOf(figures, "memory", "Sluice")
    const updated = updateFigures(figures, [measurement(ours, 55.4, 56.6)], RUN)
    expect(barOf(updated, "memory", "Sluice")).toEqual({
      ...ours,
      least: 55,
      most: 57,
      run: "bench --figures, 2030-01-02",
    })
    expect(updated.runs["bench --figures, 2030-01-02"]).toEqual(RUN)
    expect(barOf(updated, "memory", "Map of objects")).toEqual(barOf(figures, "memory", "Map of objects"))
  })

  it("marks a missed goal, even if the goal is a multiple of a peer's figure", () => {
    const memory = barOf(figures, "memory", "Sluice")
    const ours = barOf(figures, "throughput", "Sluice, take", "64")
    const peer = barOf(figures, "throughput", "rate-limiter-flexible", "64")
    const after = (take: number): Figures =>
      updateFigures(
        figures,
        [measurement(memory, 61), measurement(ours, take), measurement(peer, 50_000)],
        RUN,
      )
    expect(barOf(after(149_999), "memory", "Sluice").missed).toBe("this run")
    expect(barOf(after(149_999), "throughput", "Sluice, take", "64").missed).toBe("this run")
    expect(barOf(after(150_000), "throughput", "Sluice, take", "64").missed).toBeUndefined()
  })

  it("rounds milliseconds to two significant digits", () => {
    const [latency] = figures.charts.latency as [BarFigure]
    const [updated] = updateFigures(figures, [measurement(latency, 0.0754, 12.34)], RUN).charts.latency
    expect(updated).toMatchObject({ least: 0.075, most: 12 })
  })

  it("removes a run when none of its figures remain", () => {
    const peers = [...figures.charts.memory, ...figures.charts.throughput]
    const updated = updateFigures(
      figures,
      peers.map((bar) => measurement(bar, 50)),
      RUN,
    )
    expect(Object.keys(figures.runs)).toContain("peers")
    expect(Object.keys(updated.runs)).not.toContain("peers")
  })

  it("changes nothing without measurements", () => {
    expect(updateFigures(figures, [], RUN)).toEqual(figures)
  })
})
