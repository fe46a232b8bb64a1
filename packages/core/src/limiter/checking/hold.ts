import type { Decision } from "../../decision/decision.ts"
import type { RuleCheck } from "../../decision/rule-check.ts"
import { ClosedError, textOf } from "../../ground/errors.ts"
import type { MaybePromise } from "../../ground/maybe-promise.ts"
import { type ParsedQueue, queueOf } from "../../ground/policy.ts"
import { onAbort } from "../../ground/time.ts"
import type { Warner } from "../../ground/warnings.ts"
import type { RuleSet } from "../rule-set/rule-set.ts"
import { refusedAtClose } from "../waiting/refused.ts"
import type { WaitOptions } from "../waiting/wait-options.ts"
import type { WaitingRoom } from "../waiting/waiting-room.ts"
import type { PreparedRequest } from "./prepared-request.ts"

/** The conditions that end a request's wait early. */
export interface Leaving {
  /** Undefined if the adapter cannot detect that the client has disconnected. */
  readonly client: WaitingClient | undefined
  /** A signal that aborts when the server starts to shut down. */
  readonly draining: AbortSignal
}

/** The client of a request that may be held. */
export interface WaitingClient {
  hasLeft(): boolean
  /** Calls `listener` once when the client disconnects. Returns a function that removes the listener. */
  onLeave(listener: () => void): () => void
}

/** The decision on a request that may have been held, and the rules under which it was made. */
export interface Held {
  readonly decision: Decision
  readonly ruleSet: RuleSet
  readonly ruleChecks: readonly RuleCheck[]
}

const GONE = Symbol("gone")
const DRAINING = Symbol("draining")

/**
 * Decides a request, and holds it while rules that queue refuse it. Any other rule refuses immediately. Returns
 * undefined if the client disconnects in the meantime. If the server is shutting down, the limiter is closed or the
 * clock cannot wait, the request is refused as if the store were unavailable.
 */
export function holdInLine(
  room: WaitingRoom,
  prepared: PreparedRequest<unknown>,
  priority: number,
  leaving: Leaving,
  warner: Warner,
): MaybePromise<Held | undefined> {
  let storeChecks = prepared
  let latest = prepared
  const held = (decision: Decision): Held => {
    const { ruleSet, ruleChecks } = storeChecks
    return { decision, ruleSet, ruleChecks }
  }
  const unheld = (error: unknown): Held | undefined => {
    if (error === GONE) return undefined
    if (error !== DRAINING && !(error instanceof ClosedError)) warnOfClock(error, warner)
    return held(refusedAtClose(storeChecks.ruleChecks))
  }
  const options: WaitOptions = {
    ...waitOptionsOf(storeChecks.ruleChecks, leaving),
    priority,
    currentChecks() {
      const renewed = prepared.renewed()
      latest = renewed ?? latest
      return renewed?.ruleChecks
    },
    onRulesChanged() {
      storeChecks = latest
    },
  }
  try {
    const decision = room.enter(storeChecks.ruleChecks, options)
    return decision instanceof Promise ? decision.then(held, unheld) : held(decision)
  } catch (error) {
    return unheld(error)
  }
}

/**
 * Returns the shortest wait and the shortest line among the rules that queue. A rule with a `maxWaiting` of 0 does
 * not shorten the lines of other rules, because it refuses only requests that do not fit into its own counter.
 */
function waitOptionsOf(ruleChecks: readonly RuleCheck[], { client, draining }: Leaving): WaitOptions {
  let maxWaiting = Number.POSITIVE_INFINITY
  let maxWaitMs = Number.POSITIVE_INFINITY
  for (const { throttle, shadow } of ruleChecks) {
    const queue = queueOf(throttle)
    if (queue === undefined || shadow) continue
    if (queue.maxWaiting > 0) maxWaiting = Math.min(maxWaiting, queue.maxWaiting)
    maxWaitMs = Math.min(maxWaitMs, queue.maxWaitMs)
  }
  return {
    maxWaiting,
    maxWaitMs,
    countsDelayed: false,
    waitsFor: isQueued,
    linesUpFor: hasLine,
    onWait(leave) {
      if (draining.aborted) leave(DRAINING)
      else if (client?.hasLeft() === true) leave(GONE)
      const unheard = client?.onLeave(() => leave(GONE))
      const served = onAbort(draining, () => leave(DRAINING))
      return () => {
        unheard?.()
        served()
      }
    },
  }
}

function warnOfClock(error: unknown, warner: Warner): void {
  warner.once(
    "SLUICE_CALLBACK_FAILED",
    `clock.wait failed: ${textOf(error)}. Requests that would have to wait are refused with 503. Fix clock.wait, or leave it out to use timers.`,
    "clock.wait",
    error,
  )
}

function isQueued({ throttle }: RuleCheck): boolean {
  return queueOf(throttle) !== undefined
}

/** Whether requests may wait in line for a rule that queues. */
function hasLine({ throttle }: RuleCheck): boolean {
  return (queueOf(throttle) as ParsedQueue).maxWaiting > 0
}
