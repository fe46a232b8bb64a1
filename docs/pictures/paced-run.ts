import { AsyncLocalStorage } from "node:async_hooks"
import { setImmediate as nextTurn } from "node:timers/promises"
import { paced } from "@sluice/client"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import { rateLimit } from "@sluice/fetch"

/** The limit of the server. */
export const RULE = { limit: 10, window: "10 seconds" } as const
export const JOBS = 30
const STEP_MS = 50
/** The time that a call takes to the server, and back. */
const WAY_MS = 50
/** The pause of the client without pacing after a refusal. */
export const RETRY_MS = 1_000
const MOST_MS = 60_000

/** A call, at the time when it reached the server. */
export interface Call {
  readonly atMs: number
  readonly isAdmitted: boolean
}

/** Sends calls to a server with a limit until each was admitted once. Returns the calls that reached the server. */
export async function runCalls(isPaced: boolean): Promise<readonly Call[]> {
  const clock = manualClock(0)
  const limit = rateLimit({ ...RULE, clock, clientAddress: () => "192.0.2.1" })
  const handler = limit.wrap(() => new Response())
  const calls: Call[] = []
  async function server(...call: Parameters<typeof fetch>): Promise<Response> {
    await clock.wait(WAY_MS)
    const response = await handler(new Request(...call), undefined)
    calls.push({ atMs: clock.now(), isAdmitted: response.ok })
    await clock.wait(WAY_MS)
    return response
  }
  const api = isPaced ? paced(server) : server
  async function job(): Promise<void> {
    while (!(await api("http://localhost/")).ok) await clock.wait(RETRY_MS)
  }
  const ofRun = new AsyncLocalStorage<true>()
  const restore = followClock(clock, () => ofRun.getStore() === true)
  try {
    let isDone = false
    void ofRun.run(true, () => Promise.all(Array.from({ length: JOBS }, job))).then(() => (isDone = true))
    for (; !isDone && clock.now() < MOST_MS; clock.advance(STEP_MS)) await nextTurn()
  } finally {
    restore()
  }
  await limit.limiter.close()
  return calls
}

/**
 * Makes timers and `performance` follow a clock, because the client has no option for one. Other code, for which
 * `isOfRun` returns false, may run at the same time and keeps the real ones. Returns how to end that.
 */
function followClock(clock: ManualClock, isOfRun: () => boolean): () => void {
  const { setTimeout, clearTimeout } = globalThis
  const { random } = Math
  const now = performance.now
  Object.assign(globalThis, {
    setTimeout(callback: () => void, ms: number, ...others: []) {
      if (!isOfRun()) return setTimeout(callback, ms, ...others)
      const ending = new AbortController()
      clock.wait(ms, ending.signal).then(callback, () => undefined)
      return ending
    },
    clearTimeout(ending?: AbortController | NodeJS.Timeout) {
      // Code that runs at the same time may end a timer that it set before.
      if (ending instanceof AbortController) ending.abort()
      else clearTimeout(ending)
    },
  })
  performance.now = () => (isOfRun() ? clock.now() : now.call(performance))
  // The client varies its waits, so that clients do not come back together.
  Math.random = () => 0.5
  return () => {
    Object.assign(globalThis, { setTimeout, clearTimeout })
    performance.now = now
    Math.random = random
  }
}
