import type { Logger, ManualClock } from "@sluice/core"
import { expect } from "vitest"
import { type Ask, ask, askExactly, type Bytes, type Response } from "./ask.ts"
import type { AdapterUnderTest, AppPlan } from "./plan.ts"

/** What a behaviour is shown on: an adapter, with a clock and a log of its own. */
export interface Stage {
  readonly adapter: AdapterUnderTest
  readonly clock: ManualClock
  /** To be spread into the options of every limiter. */
  readonly base: { readonly clock: ManualClock; readonly logger: Logger }
  /** Codes of the warnings so far. */
  readonly warnings: readonly string[]
  /** Starts an app that is ended with the behaviour. */
  start(plan: AppPlan): Promise<Client>
}

export interface Client {
  readonly url: string
  (target: string, how?: Ask): Promise<Response>
  /** With the target as it is spelled. */
  exactly(target: string, method?: string): Promise<Bytes>
}

/** Registers a behaviour. */
export type Behaves = (behaviour: string, show: (stage: Stage) => Promise<void>) => void

export function clientOf(url: string): Client {
  return Object.assign((target: string, how?: Ask) => ask(url, target, how), {
    url,
    exactly: (target: string, method?: string) => askExactly(url, target, method),
  })
}

/** Asks several times, one after the other, and yields the statuses. */
export async function statuses(client: Client, times: number, target = "/", how?: Ask): Promise<number[]> {
  const all: number[] = []
  for (let i = 0; i < times; i++) all.push((await client(target, how)).status)
  return all
}

/** The request comes from this client, behind one proxy. */
export function from(address: string): Ask {
  return { headers: { "X-Forwarded-For": address } }
}

/** The names of the rate limit headers, whatever the dialect. */
export function told({ headers }: Response): string[] {
  return Object.keys(headers).filter((name) => name.includes("ratelimit"))
}

export function expectOk(response: Response): void {
  expect({ status: response.status, body: response.body }).toEqual({ status: 200, body: "ok" })
}
