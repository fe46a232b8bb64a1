import { EventEmitter } from "node:events"
import type { ServerResponse } from "node:http"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import type { MountedLayer } from "./late-place.ts"
import { MountOrder } from "./mount-order.ts"

const limiter = {}
const LIMITER: MountedLayer = { handle: limiter, path: "", isLimited: true, isRouting: false }
const ROUTE: MountedLayer = {
  path: "/login",
  isLimited: false,
  isRouting: true,
  route: { methods: ["post"], pattern: "/login" },
}
const HANDLER: MountedLayer = { handle: {}, path: "", isLimited: false, isRouting: false }

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }))
afterEach(() => void vi.useRealTimers())

/** Returns a function that sends a request through the limiter, and the watched order with its warnings. */
function setUp(layers: MountedLayer[]) {
  const warned: unknown[] = []
  const order = new MountOrder({ warnMountedTooLate: (routes) => void warned.push(routes) })
  const send = (statusCode = 404, method = "GET") => {
    const response = Object.assign(new EventEmitter(), { statusCode })
    order.watch({ method }, response as unknown as ServerResponse, limiter, () => layers)
    return () => void response.emit("finish")
  }
  return { order, warned, send }
}

describe("MountOrder", () => {
  it("stops watching after the first request if no route is before the limiter", () => {
    const { order, send } = setUp([LIMITER, ROUTE])
    send()
    expect(order.isWatching).toBe(false)
  })

  it("continues to watch after OPTIONS requests, because frameworks respond to OPTIONS after all middleware", () => {
    const { order, send } = setUp([LIMITER, ROUTE])
    send(404, "OPTIONS")
    expect(order.isWatching).toBe(true)
  })

  it("stops without a warning if a response has a status other than 404", () => {
    const { order, warned, send } = setUp([ROUTE, LIMITER])
    vi.advanceTimersByTime(5_000)
    const [found, missing] = [send(200), send()]
    found()
    missing()
    expect([order.isWatching, warned]).toEqual([false, []])
  })

  it("warns once, when the app has run for a second", () => {
    const { order, warned, send } = setUp([ROUTE, LIMITER])
    vi.advanceTimersByTime(999)
    send()()
    expect([order.isWatching, warned]).toEqual([true, []])
    vi.advanceTimersByTime(1)
    const [one, other] = [send(), send()]
    one()
    other()
    expect([order.isWatching, warned]).toEqual([false, ["POST /login and every other route"]])
  })

  it("warns only after ten 404 responses if functions after the limiter could respond", () => {
    const { warned, send } = setUp([ROUTE, LIMITER, HANDLER])
    vi.advanceTimersByTime(5_000)
    for (let nth = 0; nth < 9; nth++) send()()
    expect(warned).toEqual([])
    send()()
    expect(warned).toHaveLength(1)
  })

  it("stops without a warning if the app adds a route behind the limiter", () => {
    const layers = [ROUTE, LIMITER]
    const { order, warned, send } = setUp(layers)
    vi.advanceTimersByTime(5_000)
    const finish = send()
    layers.push(ROUTE)
    finish()
    expect([order.isWatching, warned]).toEqual([false, []])
  })
})
