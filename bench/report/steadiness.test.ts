import { expect, it } from "vitest"
import { Steadiness } from "./steadiness.ts"

it("Steadiness reports a busy machine if its speed varies by a factor of 1.6, but not 1.4", () => {
  const ticks = [0, 10, 0, 10, 0, 14, 0, 16]
  const now = performance.now
  performance.now = () => ticks.shift() as number
  try {
    const steadiness = new Steadiness()
    steadiness.look()
    steadiness.look()
    expect(steadiness.times).toBe(1.4)
    expect(steadiness.says).toContain("steady")
    steadiness.look()
    expect(steadiness.times).toBe(1.6)
    expect(steadiness.says).toContain("BUSY")
  } finally {
    performance.now = now
  }
})
