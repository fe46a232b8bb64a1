import { StoreUnavailableError } from "@sluice/core"
import { algorithmOf, bucketMsOf, bucketsOf, type CounterState, type Policy } from "@sluice/core/stores"
import { isStrict } from "./script-input.ts"

// The layout of scripts/layout.lua.
const PREVIOUS = 2 ** 21
const WINDOW = 2 ** 42
const CODES = 2047
const STRICT_SUM = 2 ** 18
const STRICT_PARTS = 2 ** 35
const STRICT_CODE = 2 ** 44
const STRICT_CODES = 511
const WIDE = /^w:(\d+):(\d+):(\d+)(?::([0-o]*))?$/

/** A script's reply: the server's time and then integers. A state that does not fit in an integer is a string. */
export type Reply = readonly unknown[]

/** @throws StoreUnavailableError if the reply cannot come from one of these scripts. */
export function readReply(reply: unknown): Reply {
  if (Array.isArray(reply) && reply.length > 0) return reply
  throw nonsense(reply)
}

/** Returns the integer at an index of a reply. A client may return integers as strings. */
export function integerAt(reply: Reply, at: number): number {
  const value = reply[at]
  const number = typeof value === "number" ? value : typeof value === "string" ? Number(value) : Number.NaN
  if (Number.isSafeInteger(number) && number >= 0) return number
  throw nonsense(reply)
}

/** Returns the counter's state at an index of a reply; undefined if these scripts did not write the key's value. */
export function stateAt(reply: Reply, at: number, policy: Policy, nowMs: number): CounterState | undefined {
  const value = reply[at]
  const wide = typeof value === "string" ? WIDE.exec(value) : null
  if (wide !== null) {
    const startMs = Number(wide[1])
    const previous = Number(wide[2])
    const current = Number(wide[3])
    if (!Number.isSafeInteger(startMs) || !Number.isSafeInteger(previous) || !Number.isSafeInteger(current)) {
      return undefined
    }
    return algorithmOf(policy).hasParts === true
      ? { startMs, current, previous, parts: wide[4] ?? "" }
      : { startMs, current, previous }
  }
  const packed = integerAt(reply, at)
  if (packed === 0) return undefined
  if (isStrict(policy)) return strictState(packed, policy, nowMs, reply)
  const alignedMs = nowMs - (nowMs % policy.windowMs)
  const [current, previous] = [packed % PREVIOUS, Math.floor(packed / PREVIOUS) % PREVIOUS]
  // A value without a code belongs to the current window.
  if (packed < WINDOW) return { startMs: alignedMs, current, previous }
  const ahead = Math.floor(packed / WINDOW) - 1 - ((alignedMs / policy.windowMs) % CODES)
  // The code is that of this window. For a fixed window, it can be the code of the next window after the clock went
  // back.
  if (ahead !== 0 && ahead !== 1 && ahead !== 1 - CODES) throw nonsense(reply)
  return { startMs: ahead === 0 ? alignedMs : alignedMs + policy.windowMs, current, previous }
}

/**
 * Returns the state of a strict window after a grant. The reply contains the sum and the number of parts, but not the
 * count of each part. The result of a grant depends only on when the oldest part has passed, because a unit then
 * comes back. So in the returned state, the oldest part has one unit and all other parts have none.
 */
function strictState(packed: number, policy: Policy, nowMs: number, reply: Reply): CounterState | undefined {
  const bucketMs = bucketMsOf(policy)
  const startMs = nowMs - (nowMs % bucketMs)
  const code = ((startMs / bucketMs) % STRICT_CODES) + 1
  if (Math.floor(packed / STRICT_CODE) !== code) throw nonsense(reply)
  const count = Math.floor(packed / STRICT_PARTS) % 512
  if (count > bucketsOf(policy)) return undefined
  return {
    startMs,
    current: packed % STRICT_SUM,
    previous: Math.floor(packed / STRICT_SUM) % (STRICT_PARTS / STRICT_SUM),
    parts: count === 0 ? "" : `1${"0".repeat(count - 1)}1`,
  }
}

/** Creates the error for a reply that none of these scripts can have returned. */
export function nonsense(reply: unknown): StoreUnavailableError {
  return new StoreUnavailableError(`Redis sent an invalid reply: ${shown(reply)}.`, {
    kind: "invalid-answer",
  })
}

function shown(reply: unknown): string {
  const text = typeof reply === "string" ? reply : (JSON.stringify(reply) ?? typeof reply)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}
