import { describe, expect, it } from "vitest"
import { atOnce, inSlices, type Pausable } from "./slices.ts"

function blockEventLoop(forMs: number): void {
  const endMs = performance.now() + forMs
  while (performance.now() < endMs);
}

describe("work in steps", () => {
  function* steps(onStep: () => void = () => undefined): Pausable<string> {
    for (let i = 0; i < 3; i++) {
      onStep()
      yield
    }
    return "done"
  }

  it("is completed synchronously by atOnce()", () => {
    expect(atOnce(steps())).toBe("done")
  })

  it("is done by inSlices() in slices of a millisecond, so that timers can fire in between", async () => {
    let turns = 0
    const turning = setInterval(() => turns++, 0)
    try {
      expect(await inSlices(steps(() => blockEventLoop(3)))).toBe("done")
      expect(turns).toBeGreaterThan(0)
    } finally {
      clearInterval(turning)
    }
  })

  it("makes inSlices() reject if a step throws", async () => {
    const failing = steps(() => {
      throw new Error("step")
    })
    await expect(inSlices(failing)).rejects.toThrow("step")
  })
})
