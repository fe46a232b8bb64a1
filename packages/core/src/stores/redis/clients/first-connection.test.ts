import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { FirstConnections } from "./first-connection.ts"

describe("FirstConnections", () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it("accepts a node for a second while it connects for the first time", () => {
    const connections = new FirstConnections()
    const node = {}
    expect(connections.accepts(node, false)).toBe(true)
    vi.advanceTimersByTime(999)
    expect(connections.accepts(node, false)).toBe(true)
    expect(connections.accepts({}, false)).toBe(true)
    vi.advanceTimersByTime(1)
    expect(connections.accepts(node, false)).toBe(false)
  })

  it("accepts a node that was ready once only while it is ready", () => {
    const connections = new FirstConnections()
    const node = {}
    expect(connections.accepts(node, false)).toBe(true)
    expect(connections.accepts(node, true)).toBe(true)
    expect(connections.accepts(node, false)).toBe(false)
    expect(connections.accepts(node, true)).toBe(true)
  })
})
