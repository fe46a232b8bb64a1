import { describe, expect, it } from "vitest"
import type { LimiterOptions } from "../options/options.ts"
import { parseOptions } from "../options/parse-options.ts"
import { LimiterState } from "./limiter-state.ts"

const stateOf = (options: Partial<LimiterOptions<unknown>> = {}) =>
  new LimiterState(parseOptions({ limit: 5, window: "1 minute", ...options }))

describe("the state of a limiter", () => {
  it("watches for blocks in its own store only after the first block", () => {
    const state = stateOf()
    expect(state.decider.blockWatch).toBeUndefined()
    const watch = state.blockWatch()
    expect([state.decider.blockWatch, state.blockWatch()]).toEqual([watch, watch])
  })

  it("listens to decisions only for rules with notify, and only while the event has a listener", () => {
    const state = stateOf()
    const ruleWith = (more: object) =>
      parseOptions({ limit: 5, window: "1 minute", ...more }).inline ?? expect.unreachable()
    const [plain, notifying] = [ruleWith({}), ruleWith({ notify: [80] })]
    state.events.on("near-limit", () => undefined)
    state.follow(state, [plain])
    expect(state.events.has("decision")).toBe(false)
    state.follow(state, [notifying])
    expect(state.events.has("decision")).toBe(true)
    state.follow(state, [plain])
    expect(state.events.has("decision")).toBe(false)
  })

  it("creates one waiting room on first use, and uses it until the limiter is closed", () => {
    const state = stateOf()
    expect(state.waiting).toBe(0)
    expect(state.waitingRoom()).toBe(state.waitingRoom())
    state.close()
    expect(() => state.waitingRoom()).toThrow("The limiter has been closed.")
  })
})
