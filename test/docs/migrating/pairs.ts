import type { RequestListener } from "node:http"
import { type ManualClock, manualClock } from "@sluice/core"
import { expect, it, onTestFinished, vi } from "vitest"
import { type Ask, ask, type Response } from "../../contracts/adapter/ask.ts"
import { listen } from "../../contracts/adapter/listen.ts"

/** A request by its path, or by more; or a number of milliseconds that both clocks move on. */
export type Step = string | number | (Ask & { readonly path: string })

/** An app with a limiter: a listener, or what makes one and is closed with it. */
export type App = RequestListener | { readonly listener: RequestListener; close(): Promise<unknown> }

/** An option of a peer and what it becomes: what both apps answer to the same requests. */
export interface Pair {
  readonly before: (clock: ManualClock) => App | Promise<App>
  readonly after: (clock: ManualClock) => App | Promise<App>
  readonly steps: readonly Step[]
  /** What is compared of an answer: default its status. */
  readonly told?: (response: Response) => unknown
  /** What is told of each answer, by both. */
  readonly expected: readonly unknown[]
}

/** What is to be closed after the test, the last first. */
export function afterwards(close: () => Promise<unknown>): void {
  onTestFinished(async () => void (await close()))
}

/** A clock for Sluice that the peers' own follow: when it is moved, so is what `Date.now()` and `process.hrtime()` tell. */
export function commonClock(): ManualClock {
  const clock = manualClock()
  vi.useFakeTimers({ toFake: ["Date", "hrtime"], now: clock.now() })
  onTestFinished(() => void vi.useRealTimers())
  return {
    ...clock,
    advance(ms) {
      clock.advance(ms)
      vi.advanceTimersByTime(ms)
    },
  }
}

/** Serves the app until the test is over. Yields what asks it. */
export async function serve(app: App): Promise<(step: Exclude<Step, number>) => Promise<Response>> {
  const { listener, close } = typeof app === "function" ? { listener: app, close: undefined } : app
  const running = await listen(listener)
  if (close !== undefined) afterwards(close)
  afterwards(running.close)
  return (step) => (typeof step === "string" ? ask(running.url, step) : ask(running.url, step.path, step))
}

/** The answers of an app to these steps, one after the other. */
export async function answers(app: App, clock: ManualClock, steps: readonly Step[]): Promise<Response[]> {
  const send = await serve(app)
  const told: Response[] = []
  for (const step of steps) {
    if (typeof step === "number") clock.advance(step)
    else told.push(await send(step))
  }
  return told
}

/** The same, of which only the statuses matter. */
export async function statuses(app: App, steps: readonly Step[], clock = commonClock()): Promise<number[]> {
  return (await answers(app, clock, steps)).map(({ status }) => status)
}

const statusOf = ({ status }: Response): unknown => status

/** A test for each pair: both apps answer alike, and as expected. */
export function behaveAlike(pairs: Readonly<Record<string, Pair>>): void {
  for (const [option, { before, after, steps, told = statusOf, expected }] of Object.entries(pairs)) {
    it(`${option} becomes what the guide says: both answer alike`, async () => {
      for (const make of [before, after]) {
        const clock = commonClock()
        expect((await answers(await make(clock), clock, steps)).map(told)).toEqual(expected)
        vi.useRealTimers()
      }
    })
  }
}
