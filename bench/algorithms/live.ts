import { setTimeout } from "node:timers/promises"
import type { Store } from "@sluice/core"
import type { Policy } from "@sluice/core/stores"
import { redisStore } from "@sluice/redis"
import type { Redis } from "ioredis"
import { connect } from "../redis/connect.ts"
import { type Worst, watch } from "./adversary.ts"
import { type Kind, policyOf, wholeSize } from "./kinds.ts"
import type { Admission } from "./most-in.ts"

/** The window is short, so that a run contains many windows. A sub-window still lasts a few milliseconds. */
const WINDOW_MS = 240
const LIMIT = 50
const BUCKETS = 60
/**
 * The timeout is long, so that the run does not fail on a busy machine. A late result would be lost, although the
 * store has granted the units.
 */
const PATIENCE_MS = 2_000
const STORES = 2
const IN_FLIGHT = 16

/**
 * Plays a greedy client against a real Redis in real time, through two stores that each have their own connection.
 * For some windows, the client sends requests as fast as it can. Then it sends bursts just before the end of one
 * window, and just before and after the end of the next. The recorded times are the times at which Redis decided.
 */
export async function playLive(kind: Kind, port: number, windows: number): Promise<readonly Worst[]> {
  const size = wholeSize(kind, { limit: LIMIT, windowMs: WINDOW_MS, buckets: BUCKETS })
  const clients = await Promise.all(Array.from({ length: STORES }, () => connect(port)))
  const stores = clients.map((client: Redis) => {
    // The deny cache is off, so that each request reaches Redis.
    return redisStore({ client, timeoutMs: PATIENCE_MS, denyCacheMs: 0 })
  })
  const policy = policyOf(kind, size)
  const admissions: Admission[] = []
  const ask = async (store: Store, cost: number): Promise<void> => {
    const answer = await store.take([{ policy, partition: kind.name, cost, shadow: false }])
    if (answer?.granted === true) admissions.push({ atMs: answer.nowMs, units: cost })
  }
  try {
    const endsMs = Date.now() + (windows / 2) * WINDOW_MS
    const flood = async (store: Store): Promise<void> => {
      while (Date.now() < endsMs) await ask(store, 1)
    }
    await Promise.all(stores.flatMap((store) => Array.from({ length: IN_FLIGHT }, () => flood(store))))
    for (let window = 0; window < windows / 2; window += 3) {
      // Pause for a window, so that the whole limit is available at the end of the next window.
      await untilOffset(WINDOW_MS - 1)
      await setTimeout(2)
      for (const offsetMs of [WINDOW_MS - 4, WINDOW_MS - 6, 2]) {
        await untilOffset(offsetMs)
        await burst(stores, ask)
      }
    }
  } finally {
    for (const store of stores) store.close()
    for (const client of clients) client.disconnect()
  }
  if (admissions.length === 0) throw new Error(`${kind.name} admitted nothing in Redis`)
  const watched = watch(kind, size)
  for (const admission of admissions.toSorted((a, b) => a.atMs - b.atMs)) watched.add(admission)
  return watched.worst()
}

/** Requests the whole limit from each store in one burst, unit by unit. */
async function burst(
  stores: readonly Store[],
  ask: (store: Store, cost: number) => Promise<void>,
): Promise<void> {
  await Promise.all(stores.flatMap((store) => Array.from({ length: LIMIT }, () => ask(store, 1))))
}

/**
 * Waits for the next instant that is `offsetMs` after the start of a window. Windows begin at multiples of their
 * length.
 */
async function untilOffset(offsetMs: number): Promise<void> {
  const waitMs = (offsetMs - (Date.now() % WINDOW_MS) + WINDOW_MS) % WINDOW_MS
  await setTimeout(waitMs)
}

export const LIVE_SIZE: Pick<Policy, "limit" | "windowMs"> = { limit: LIMIT, windowMs: WINDOW_MS }
