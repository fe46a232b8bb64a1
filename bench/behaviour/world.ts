import type { RedisServer } from "../redis/server.ts"
import type { AppSetup } from "./app.ts"
import { type HttpClient, openClient } from "./client.ts"

/** Which process an app is in: the first, a second one, or one whose wall clock is ahead of theirs. */
export type Place = "first" | "second" | "ahead"

/** How far the clock of "ahead" is. */
export const AHEAD_MS = 11_000

/** An app that has been started somewhere. */
export interface StartedApp {
  readonly port: number
  /** Bytes of its process in use after garbage collection, where it can tell. */
  memory(): Promise<number>
  stop(): Promise<void>
}

/** An app with a client for it. */
export interface Site extends HttpClient {
  readonly app: StartedApp
}

/**
 * A deadline for Redis where no outage is looked at, as in bench:redis: most peers have none, and on a machine that others
 * use a decision without Redis now and then would be seen in place of what the drill is about.
 */
const PATIENT_MS = 2_000

export interface DrillSetup extends Omit<AppSetup, "redis" | "storeTimeoutMs"> {
  readonly storeTimeoutMs?: number
  /** By default "redis". */
  readonly counts?: "redis" | "memory"
}

/** In milliseconds. */
export interface Waits {
  /** How long a client waits for an answer. */
  readonly patienceMs: number
  /** An answer that takes longer is as bad as none to an app. */
  readonly promptMs: number
}

/** All that a drill gets: one contender, which it can start as often as it wants, and a Redis of that contender's own. */
export interface World extends Waits {
  readonly redis: RedisServer
  /** Rejects when the app does not start. */
  start(setup: DrillSetup, place?: Place): Promise<Site>
  /** Stops what a drill has started and not stopped. */
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
      // One after the other: a process answers one question at a time.
      for (const { app, close } of sites.splice(0)) {
        close()
        await app.stop()
      }
    },
  }
}
