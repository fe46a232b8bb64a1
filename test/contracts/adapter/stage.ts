import type { Decision, Logger } from "@sluice/core"
import type { ManualClock } from "@sluice/core/testing"
import { expect } from "vitest"
import { type Ask, ask, askExactly, type Bytes, type Response } from "./ask.ts"
import type { AdapterUnderTest, AppPlan, Options, RoutePlan } from "./plan.ts"

/** The environment of a behavior, with an adapter and a separate clock and log. */
export interface Stage {
  readonly adapter: AdapterUnderTest
  readonly clock: ManualClock
  /** Options for every limiter. */
  readonly base: { readonly clock: ManualClock; readonly logger: Logger }
  /** Codes of the warnings so far. */
  readonly warnings: readonly string[]
  /** Starts an app. The app is stopped after the behavior has been tested. */
  start(plan: AppPlan): Promise<Client>
  /** Starts an app with one mount, whose options are `options` and `base`. */
  limited(options: Options, plan?: AppPlan): Promise<Client>
}

export interface Client {
  readonly url: string
  (target: string, how?: Ask): Promise<Response>
  /** Sends a request with exactly this target. */
  exactly(target: string, method?: string): Promise<Bytes>
}

/** A function that registers a behavior. */
export type Behaves = (behaviour: string, show: (stage: Stage) => Promise<void>) => void

export function clientOf(url: string): Client {
  return Object.assign((target: string, how?: Ask) => ask(url, target, how), {
    url,
    exactly: (target: string, method?: string) => askExactly(url, target, method),
  })
}

/** Sends several requests, one after another, and resolves with the statuses of the responses. */
export async function statuses(client: Client, times: number, target = "/", how?: Ask): Promise<number[]> {
  const all: number[] = []
  for (let i = 0; i < times; i++) all.push((await client(target, how)).status)
  return all
}

/** Returns the options of a request from this client, behind one proxy. */
export function from(address: string): Ask {
  return { headers: { "X-Forwarded-For": address } }
}

/** Returns the names of the rate limit headers, in any dialect. */
export function told({ headers }: Response): string[] {
  return Object.keys(headers).filter((name) => name.includes("ratelimit"))
}

export function expectOk(response: Response): void {
  expect({ status: response.status, body: response.body }).toEqual({ status: 200, body: "ok" })
}

/** Returns the route "/", which adds the decision on each request to a list. */
export function notingRoute(adapter: AdapterUnderTest, decisions: (Decision | undefined)[]): RoutePlan {
  const handle = (request: object) => {
    decisions.push(adapter.decisionOf(request))
    return {}
  }
  return { path: "/", handle }
}
