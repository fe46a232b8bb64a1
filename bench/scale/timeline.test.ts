import { describe, expect, it } from "vitest"
import { START_MS, Timeline } from "./timeline.ts"

describe("a timeline", () => {
  it("runs events at their scheduled times, and simultaneous events in the order of scheduling", async () => {
    const timeline = new Timeline()
    const seen: string[] = []
    const note = (name: string) => () => void seen.push(`${name} at ${timeline.nowMs - START_MS}`)
    timeline.after(2, note("late"))
    timeline.after(0.5, note("first"))
    timeline.after(0.5, note("second"))
    timeline.after(1.2, note("rounded up"))
    await timeline.until(START_MS + 1)
    expect(seen).toEqual(["first at 0.5", "second at 0.5"])
    await timeline.until(START_MS + 3)
    expect(seen.slice(2)).toEqual(["rounded up at 1.5", "late at 2"])
  })

  it("runs an event that was scheduled by another event", async () => {
    const timeline = new Timeline()
    const seen: number[] = []
    timeline.every(10, 0.25, () => seen.push(timeline.nowMs - START_MS))
    await timeline.until(START_MS + 23)
    expect(seen).toEqual([2.5, 12.5, 22.5])
  })
})
