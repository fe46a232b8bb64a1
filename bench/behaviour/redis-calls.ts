import { callsSince, type RedisServer, usageOf } from "../redis/server.ts"
import { isAdmitted } from "./client.ts"
import type { Site } from "./world.ts"

/** The commands that run scripts. Redis also counts the commands that a script calls. */
const SCRIPTS = ["evalsha", "eval", "fcall"]

export interface Calls {
  /** Commands that the limiter sent. */
  readonly sent: number
  /** Commands that Redis ran, including commands in scripts. */
  readonly run: number
}

/** Counts the commands during `work`. Only `work` may use Redis in that time. */
export async function countCalls(redis: RedisServer, work: () => Promise<unknown>): Promise<Calls> {
  const before = await usageOf(redis)
  await work()
  const after = await usageOf(redis)
  const run = callsSince(before, after)
  const scripts = callsSince(before, after, SCRIPTS)
  return { sent: scripts > 0 ? scripts : run, run }
}

/** Returns the calls per admitted request. The requests come from different clients, one after the other. */
export async function measureCalls(redis: RedisServer, site: Site, times: number): Promise<Calls> {
  // The first request may have to load the scripts.
  await site.ask({ from: "192.0.2.1" })
  const { sent, run } = await countCalls(redis, async () => {
    for (let i = 0; i < times; i++) {
      if (!isAdmitted(await site.ask({ from: `192.0.2.${i + 2}` }))) throw new Error("It was refused")
    }
  })
  return { sent: sent / times, run: run / times }
}
