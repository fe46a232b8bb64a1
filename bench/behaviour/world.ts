import type { RedisServer } from "../redis/server.ts"
import type { AppSetup } from "./app.ts"
import { type HttpClient, openClient } from "./client.ts"

/** The process in which an app runs: the first process, the second, or a process whose wall clock is ahead. */
export type Place = "first" | "second" | "ahead"

/** The lead of the clock in the process "ahead". */
export const AHEAD_MS = 11_000

/** An app in one of the processes. */
export interface StartedApp {
  readonly port: number
  /** Returns the bytes that the app's process uses after garbage collection. */
  memory(): Promise<number>
  stop(): Promise<void>
}

/** An app and a client that calls it. */
export interface Site extends HttpClient {
  readonly app: StartedApp
}

/**
 * The Redis timeout of drills without an outage, as in bench:redis. Most peers have no timeout. On a busy machine, a
 * short timeout would cause decisions without Redis, which would hide the behavior that the drill examines.
 */
const PATIENT_MS = 2_000

export interface DrillSetup extends Omit<AppSetup, "redis" | "storeTimeoutMs"> {
  readonly storeTimeoutMs?: number
  /** Default: "redis". */
  readonly counts?: "redis" | "memory"
}

/** Times in milliseconds. */
export interface Waits {
  /** The client's timeout. */
  readonly patienceMs: number
  /** The longest acceptable response time. */
  readonly promptMs: number
}

/** The environment of a drill: one contender, which it can start several times, and a Redis for this contender only. */
export interface World extends Waits {
  readonly redis: RedisServer
  /** Starts an app. Rejects if the app does not start. */
  start(setup: DrillSetup, place?: Place): Promise<Site>
  /** Stops all apps that the drill has started. */
  stop(): Promise<void>
}

export type Start = (setup: AppSetup, place: Place) => Promise<StartedApp>

export function createWorld(redis: RedisServer, waits: Waits, start: Start): World {
  const sites: Site[] = []
  return {
    redis,
    ...waits,
    async start({ counts = "redis", storeTimeoutMs = PATIENT_MS, ...rest }, place = "first") {
      const setup = { ...rest, storeTimeoutMs }
      const isUp = redis.running
      const app = await start(
        counts === "memory" ? setup : { ...setup, redis: { port: redis.port, isUp } },
        place,
      )
      const client = openClient(app.port, waits.patienceMs)
      const site = { app, ask: client.ask, close: client.close }
      sites.push(site)
      return site
    },
    async stop() {
      // Stop them one after the other, because a process handles one task at a time.
      for (const { app, close } of sites.splice(0)) {
        close()
        await app.stop()
      }
    },
  }
}
