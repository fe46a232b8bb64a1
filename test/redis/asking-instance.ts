import { createLimiter, type Limiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { type ClientChoice, openClient } from "./open-client.ts"

/** The settings that all instances of an app share: one rule for the whole service, on one Redis. */
export interface App {
  readonly client: ClientChoice
  readonly prefix: string
  readonly limit: number
  readonly windowMs: number
}

/** A command to one instance. */
export type Order =
  /** Sends requests with all of these costs at the same time. */
  | { readonly do: "burst"; readonly costs: readonly number[] }
  /**
   * Repeats requests of one unit, a few at a time, until a request is refused or `most` units are admitted. Reports
   * each admission.
   */
  | { readonly do: "load"; readonly most: number }
  /**
   * Like `load`, but the instance kills itself after `after` units. The instance must do this itself, because only it
   * can choose that moment.
   */
  | { readonly do: "fall"; readonly after: number }
  | { readonly do: "leave" }

/** A message of an instance. The instance is ready, some units were admitted during an order, or an order is done. */
export type Told =
  | { readonly told: "ready"; readonly nowMs: number }
  | { readonly told: "admitted"; readonly units: number }
  | ({ readonly told: "done" } & Tally)

export interface Tally {
  /** Units, not requests. */
  readonly admitted: number
  readonly refused: number
  readonly degraded: number
  /** The wait of the last refusal; 0 if no request was refused. */
  readonly retryAfterMs: number
}

/**
 * Number of concurrent requests, as on a busy server. The pause makes the quota last while instances start and stop.
 */
const AT_ONCE = 8
const PAUSE_MS = 2

/**
 * Starts one instance of an app, which calls its limiter as if clients sent requests. Each order must be done before
 * the next order is sent.
 */
export async function askingInstance(app: App, tell: (told: Told) => void): Promise<(order: Order) => void> {
  const { client, close } = await openClient(app.client)
  const limiter = createLimiter({
    store: redisStore({ client, prefix: app.prefix }),
    service: "shop",
    limit: app.limit,
    window: app.windowMs,
    field: "service",
    // Use a long timeout, because a machine under test may be slow. Only the count matters here, and decisions
    // without Redis do not count.
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
          // Start more requests, which are pending when the process dies.
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
