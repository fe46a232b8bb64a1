import type { Limit } from "../app.ts"
import { byLogs, type CreateCounting, connect, takeFromLogs, type Verdict } from "./takes.ts"

// Limiters that each contain a deliberate fault.

/** Wrong: rejects as soon as the connection is lost, so that an app without a fallback fails. */
export const byConnectedLogs: CreateCounting = (setup) => {
  const client = connect(setup, { maxRetriesPerRequest: 0 })
  return { take: (name) => takeFromLogs(client, name, setup.limits), close: () => client.disconnect() }
}

/** Wrong: uses the clock of this process. */
export const byOwnClock: CreateCounting = (setup, aheadMs) => {
  const client = connect(setup)
  return {
    take: (name) => takeFromLogs(client, name, setup.limits, Date.now() + aheadMs),
    close: () => client.disconnect(),
  }
}

/** Wrong: checks one limit after the other, and does not undo a count if a later limit refuses the request. */
export function inTurn(isLongestFirst: boolean): CreateCounting {
  return (setup) => {
    const client = connect(setup)
    const limits = isLongestFirst ? setup.limits.toReversed() : setup.limits
    return {
      async take(name) {
        let verdict: Verdict = { waitMs: 0, remaining: 0 }
        for (const limit of limits) {
          verdict = await takeFromLogs(client, name, [limit])
          if (verdict.waitMs > 0) break
        }
        return verdict
      },
      close: () => client.disconnect(),
    }
  }
}

/** Wrong: enforces only the first of several limits. */
export const byFirstLimit: CreateCounting = (setup, aheadMs) =>
  byLogs({ ...setup, limits: setup.limits.slice(0, 1) }, aheadMs)

/** Wrong: starts from zero in each window since the epoch, so a client can use up two windows at their boundary. */
export const inFixedWindows: CreateCounting = (setup) => {
  const client = connect(setup)
  const { limit, windowMs } = setup.limits[0] as Limit
  return {
    async take(name) {
      const nowMs = Date.now()
      const count = await client.incr(`${name}:${Math.floor(nowMs / windowMs)}`)
      return { waitMs: count > limit ? windowMs - (nowMs % windowMs) : 0, remaining: limit - count }
    },
    close: () => client.disconnect(),
  }
}

/** Wrong: checks the limit first, and counts in a second step. */
export const inTwoSteps: CreateCounting = (setup) => {
  const client = connect(setup)
  const { limit, windowMs } = setup.limits[0] as Limit
  return {
    async take(name) {
      const count = Number(await client.get(name))
      if (count >= limit) return { waitMs: windowMs, remaining: 0 }
      await client.incr(name)
      return { waitMs: 0, remaining: limit - count - 1 }
    },
    close: () => client.disconnect(),
  }
}

/** Wrong: returns the same verdict for every client, and counts nothing. */
export function always(verdict: Verdict): CreateCounting {
  return () => ({ take: async () => verdict, close() {} })
}
