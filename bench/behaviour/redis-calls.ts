import { callsSince, type RedisServer, usageOf } from "../redis/server.ts"
import { isAdmitted } from "./client.ts"
import type { Site } from "./world.ts"

/** What a limiter sends where it counts by scripts; what these call in turn is counted by Redis beside them. */
const SCRIPTS = ["evalsha", "eval", "fcall"]

export interface Calls {
  /** Commands that were sent. */
  readonly sent: number
  /** Commands that Redis ran, those in scripts included. */
  readonly run: number
}

/** What Redis was asked while `work` went on. Nobody else may use it meanwhile. */
export async function countCalls(redis: RedisServer, work: () => Promise<unknown>): Promise<Calls> {
  const before = await usageOf(redis)
  await work()
  const after = await usageOf(redis)
  const run = callsSince(before, after)
  const scripts = callsSince(before, after, SCRIPTS)
  return { sent: scripts > 0 ? scripts : run, run }
}

/** Calls by the request, of requests that are admitted, each of another client and one after the other. */
export async function measureCalls(redis: RedisServer, site: Site, times: number): Promise<Calls> {
  // The first one may have to send the scripts.
  await site.ask({ from: "192.0.2.1" })
  const { sent, run } = await countCalls(redis, async () => {
    for (let i = 0; i < times; i++) {
      if (!isAdmitted(await site.ask({ from: `192.0.2.${i + 2}` }))) throw new Error("It was refused")
    }
  })
  return { sent: sent / times, run: run / times }
}
