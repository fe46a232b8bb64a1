import type { RequestListener } from "node:http"
import { type ManualClock, manualClock } from "@sluice/core/testing"
import { expect, it, onTestFinished, vi } from "vitest"
import { type Ask, ask, type Response } from "../../contracts/adapter/ask.ts"
import { listen } from "../../contracts/adapter/listen.ts"

/** A request, as a path or with more details, or a number of milliseconds by which both clocks advance. */
export type Step = string | number | (Ask & { readonly path: string })

/** An app with a limiter: a listener, or an object that creates a listener and can be closed. */
export type App = RequestListener | { readonly listener: RequestListener; close(): Promise<unknown> }

/** An option of a peer and its replacement, with the requests to which both apps must respond in the same way. */
export interface Pair {
  readonly before: (clock: ManualClock) => App | Promise<App>
  readonly after: (clock: ManualClock) => App | Promise<App>
  readonly steps: readonly Step[]
  /** Selects the part of a response to compare. Default: the status. */
  readonly told?: (response: Response) => unknown
  /** The selected parts that both apps must return. */
  readonly expected: readonly unknown[]
}

/** Registers a function that closes something after the test. The last registered function runs first. */
export function afterwards(close: () => Promise<unknown>): void {
  onTestFinished(async () => void (await close()))
}

/** Returns a clock for Sluice that also moves the peers' clocks: `Date.now()` and `process.hrtime()`. */
export function commonClock(): ManualClock {
  const clock = manualClock()
  vi.useFakeTimers({ toFake: ["Date", "hrtime"], now: clock.now() })
  onTestFinished(() => void vi.useRealTimers())
  return {
    ...clock,
    advance(duration) {
      const beforeMs = clock.now()
      clock.advance(duration)
      vi.advanceTimersByTime(clock.now() - beforeMs)
    },
  }
}

/** Serves the app until the test ends. Resolves to a function that sends requests. */
export async function serve(app: App): Promise<(step: Exclude<Step, number>) => Promise<Response>> {
  const { listener, close } = typeof app === "function" ? { listener: app, close: undefined } : app
  const running = await listen(listener)
  if (close !== undefined) afterwards(close)
  afterwards(running.close)
  return (step) => (typeof step === "string" ? ask(running.url, step) : ask(running.url, step.path, step))
}

/** Resolves to the responses of an app to these steps, in order. */
export async function answers(app: App, clock: ManualClock, steps: readonly Step[]): Promise<Response[]> {
  const send = await serve(app)
  const told: Response[] = []
  for (const step of steps) {
    if (typeof step === "number") clock.advance(step)
    else told.push(await send(step))
  }
  return told
}

/** Resolves to the statuses of an app for these steps, in order. */
export async function statuses(app: App, steps: readonly Step[], clock = commonClock()): Promise<number[]> {
  return (await answers(app, clock, steps)).map(({ status }) => status)
}

const statusOf = ({ status }: Response): unknown => status

/** Registers a test for each pair. Both apps must respond in the same way, and as expected. */
export function behaveAlike(pairs: Readonly<Record<string, Pair>>): void {
  for (const [option, { before, after, steps, told = statusOf, expected }] of Object.entries(pairs)) {
    it(`gives the same responses as before: ${option}`, async () => {
      for (const make of [before, after]) {
        const clock = commonClock()
        expect((await answers(await make(clock), clock, steps)).map(told)).toEqual(expected)
        vi.useRealTimers()
      }
    })
  }
}
