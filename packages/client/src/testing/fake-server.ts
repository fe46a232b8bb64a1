import { vi } from "vitest"
import { type PacedFetch, type PacedOptions, paced } from "../index.ts"
import { type FakeClock, fakeClock } from "./fake-clock.ts"

/** A call that has arrived at the fake server. */
export interface Arrived {
  readonly atMs: number
  readonly url: string
  readonly input: Parameters<typeof fetch>[0]
  readonly init: RequestInit
  settle(outcome: Response | Error): void
}

export interface World extends FakeClock {
  readonly api: PacedFetch
  /** The calls that have arrived, in order. */
  readonly arrived: Arrived[]
  /**
   * Sends calls, and returns their outcomes. An outcome is a status, an error, or undefined while the call is
   * pending.
   */
  call(path?: string, init?: Parameters<PacedFetch>[1]): { result?: number | Error }
  /**
   * Responds to the n-th call that has arrived, counting from 0, and waits until all immediate effects have happened.
   */
  answer(n: number, status?: number, headers?: Readonly<Record<string, string>>, body?: string): Promise<void>
  /** Breaks the connection of the n-th call. */
  fail(n: number, error: Error): Promise<void>
  /** Lets time pass. */
  pass(ms: number): Promise<void>
}

/** Returns a paced fetch whose calls are answered by the test, on a fake clock that starts at 0. */
export function world(options?: PacedOptions): World {
  const { timers } = fakeClock()
  const arrived: Arrived[] = []
  const pass = async (ms: number): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms))
  const api = paced(
    (input, init = {}) =>
      new Promise((resolve, reject) => {
        init.signal?.addEventListener("abort", () => reject(init.signal?.reason))
        const url = input instanceof Request ? input.url : String(input)
        arrived.push({
          ...{ atMs: performance.now(), url, input, init },
          settle: (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome)),
        })
      }),
    options,
  )
  const call: World["call"] = (path = "", init) => {
    const made: { result?: number | Error } = {}
    api(`http://localhost/${path}`, init)
      .then(
        ({ status }) => status,
        (error: Error) => error,
      )
      .then((result) => Object.assign(made, { result }))
    return made
  }
  const settle = async (n: number, outcome: Response | Error): Promise<void> => {
    // Wait, because a call arrives only after several promises have settled.
    await pass(0)
    arrived[n]?.settle(outcome)
    await pass(0)
  }
  return {
    ...{ api, arrived, call, pass, timers },
    answer: (n, status = 200, headers = {}, body = "") =>
      settle(n, new Response(body, { status, headers: { ...headers } })),
    fail: settle,
  }
}

/** Returns the fields of draft 11. */
export function left(r: number, t: number, q = 100, w = 60): Readonly<Record<string, string>> {
  return { ratelimit: `"p";r=${r};t=${t}`, "ratelimit-policy": `"p";q=${q};w=${w}` }
}
