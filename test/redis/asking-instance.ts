import { createLimiter, type Limiter } from "@sluice/core"
import { redisStore } from "@sluice/core/redis"
import { type ClientChoice, openClient } from "./open-client.ts"

/** What all instances of an app have in common: one rule for the whole service, on one Redis. */
export interface App {
  readonly client: ClientChoice
  readonly prefix: string
  readonly limit: number
  readonly windowMs: number
}

/** What one instance is told to do. */
export type Order =
  /** Asks for all of these costs at once. */
  | { readonly do: "burst"; readonly costs: readonly number[] }
  /** Asks for single units again and again, a few at once, until it is refused or has so many; tells of each admission. */
  | { readonly do: "load"; readonly most: number }
  /** The same, but kills itself when it has so many: nobody else knows that moment in time. */
  | { readonly do: "fall"; readonly after: number }
  | { readonly do: "leave" }

/** What an instance tells: that it is ready, what it was admitted meanwhile, and at the end of an order all of it. */
export type Told =
  | { readonly told: "ready"; readonly nowMs: number }
  | { readonly told: "admitted"; readonly units: number }
  | ({ readonly told: "done" } & Tally)

export interface Tally {
  /** Units, not requests. */
  readonly admitted: number
  readonly refused: number
  readonly degraded: number
  /** Of the last refusal; 0 when there was none. */
  readonly retryAfterMs: number
}

/** So many at once, as a server that is busy; and a pause, so that instances come and go while there is quota left. */
const AT_ONCE = 8
const PAUSE_MS = 2

/** One instance of an app, which asks its limiter in place of clients. An order is for after the last one is done. */
export async function askingInstance(app: App, tell: (told: Told) => void): Promise<(order: Order) => void> {
  const { client, close } = await openClient(app.client)
  const limiter = createLimiter({
    store: redisStore({ client, prefix: app.prefix }),
    service: "shop",
    limit: app.limit,
    window: app.windowMs,
    field: "service",
    // A machine under test may be slow; what is shown is the count, and no decision without Redis counts.
    storeTimeoutMs: 20_000,
  })
  tell({ told: "ready", nowMs: Date.now() })
  return (order) => {
    switch (order.do) {
      case "burst":
        ask(limiter, order.costs).then((tally) => tell({ told: "done", ...tally }))
        return
      case "load":
        load(limiter, order.most, tell).then((tally) => tell({ told: "done", ...tally }))
        return
      case "fall":
        load(limiter, order.after, tell).then(() => {
          // In the middle of more.
          void ask(limiter, Array(AT_ONCE).fill(1))
          setImmediate(() => process.kill(process.pid, "SIGKILL"))
        })
        return
      case "leave":
        limiter.close().then(close)
    }
  }
}

async function ask(limiter: Limiter<object>, costs: readonly number[]): Promise<Tally> {
  const tally = { admitted: 0, refused: 0, degraded: 0, retryAfterMs: 0 }
  const decisions = await Promise.all(costs.map((cost) => limiter.decide({}, { cost })))
  for (const { allowed, cost, degraded, retryAfterMs } of decisions) {
    if (degraded) tally.degraded++
    else if (allowed) tally.admitted += cost
    else {
      tally.refused++
      tally.retryAfterMs = retryAfterMs
    }
  }
  return tally
}

async function load(limiter: Limiter<object>, most: number, tell: (told: Told) => void): Promise<Tally> {
  let all: Tally = { admitted: 0, refused: 0, degraded: 0, retryAfterMs: 0 }
  while (all.refused === 0 && all.admitted < most) {
    const some = await ask(limiter, Array(AT_ONCE).fill(1))
    if (some.admitted > 0) tell({ told: "admitted", units: some.admitted })
    all = {
      admitted: all.admitted + some.admitted,
      refused: all.refused + some.refused,
      degraded: all.degraded + some.degraded,
      retryAfterMs: some.retryAfterMs,
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  return all
}
