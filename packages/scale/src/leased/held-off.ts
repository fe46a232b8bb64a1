import { algorithmOf, type Check, type Counted, countsRefusals, type StoreResult } from "@sluice/core/stores"
import type { Seen } from "../in-front/seen.ts"
import type { LeasedRequest } from "./lease.ts"

/** Returns the refusal of a request that is held off; undefined if the request is not held off. */
export function heldOff({ checks, counters, nowMs }: LeasedRequest): StoreResult | undefined {
  let againAfterMs = 0
  let longestMs = -1
  let serverMs = 0
  const repeated: ({ readonly serverMs: number; readonly counted: Counted } | undefined)[] = []
  for (let i = 0; i < checks.length; i++) {
    const check = checks[i] as Check
    const { policy, cost } = check
    const lease = counters[i]
    if (lease === undefined || lease.covers(cost)) continue
    const restMs = lease.holdOff.restMs(check, nowMs)
    if (restMs === 0) continue
    againAfterMs = Math.max(againAfterMs, restMs)
    const refusal = lease.holdOff.repeated(nowMs)
    repeated[i] = refusal
    const waitMs = algorithmOf(policy).retryAfterMs(refusal.counted.state, policy, cost, refusal.serverMs)
    if (waitMs > longestMs) {
      longestMs = waitMs
      serverMs = refusal.serverMs
    }
  }
  // The store must receive every request whose refusal counts.
  if (againAfterMs === 0 || checks.some(countsRefusals)) return undefined
  // A state is reported as of the time at which it was read, because a later state might admit. The result has only
  // one time, so it contains only the refusals from the time with the longest wait.
  const counted = checks.map((_, i) =>
    repeated[i]?.serverMs === serverMs ? repeated[i]?.counted : undefined,
  )
  return { nowMs: serverMs, granted: false, checks: counted, isRemembered: true, againAfterMs }
}

/**
 * Updates leased counters from the reply to the rest of a request. Returns the length of the hold-off after a
 * refusal, or 0.
 */
export function learnAnswer(request: LeasedRequest, answer: StoreResult, arrivedMs: number): number {
  const { checks, counters, aside, nowMs: sentMs } = request
  const { granted, nowMs: serverMs, isRemembered } = answer
  let againAfterMs = 0
  if (isRemembered === true) return againAfterMs
  const isHeldOff = !granted && !checks.some(countsRefusals)
  let next = 0
  for (let i = 0; i < checks.length; i++) {
    if (aside[i] !== undefined) continue
    const [check, lease, counted] = [checks[i] as Check, counters[i], answer.checks[next++]]
    if (lease === undefined || counted === undefined) continue
    const { state, taken } = counted
    const seen: Seen = { state, serverMs, sentMs, arrivedMs }
    lease.learn(seen, taken)
    const { policy, cost, shadow } = check
    if (granted || shadow || algorithmOf(policy).admits(state, policy, cost, serverMs)) continue
    lease.holdOff.refuse(check, seen)
    if (isHeldOff) againAfterMs = Math.max(againAfterMs, lease.holdOff.restMs(check, arrivedMs))
  }
  return againAfterMs
}
