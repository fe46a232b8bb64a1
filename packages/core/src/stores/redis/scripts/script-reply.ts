import type { CounterState } from "../../../algorithms/algorithm.ts"
import { algorithmOf } from "../../../algorithms/kinds.ts"
import { bucketMsOf, bucketsOf } from "../../../algorithms/sub-windows.ts"
import { StoreUnavailableError } from "../../../ground/errors.ts"
import type { Policy } from "../../../ground/policy.ts"
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

/** What a script answered: integers, and a text for a state that is too large for one. The server's time comes first. */
export type Reply = readonly unknown[]

/** @throws StoreUnavailableError when it is no reply of a script of ours. */
export function readReply(reply: unknown): Reply {
  if (Array.isArray(reply) && reply.length > 0) return reply
  throw nonsense(reply)
}

/** The integer at a place of a reply. A client may yield integers as text. */
export function integerAt(reply: Reply, at: number): number {
  const value = reply[at]
  const number = typeof value === "number" ? value : typeof value === "string" ? Number(value) : Number.NaN
  if (Number.isSafeInteger(number) && number >= 0) return number
  throw nonsense(reply)
}

/** The state of a counter at a place of a reply; undefined when its key holds what is none of ours. */
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
  // Without a code it is of the present window.
  if (packed < WINDOW) return { startMs: alignedMs, current, previous }
  const ahead = Math.floor(packed / WINDOW) - 1 - ((alignedMs / policy.windowMs) % CODES)
  // This window or, for a fixed one after the clock went back, the next.
  if (ahead !== 0 && ahead !== 1 && ahead !== 1 - CODES) throw nonsense(reply)
  return { startMs: ahead === 0 ? alignedMs : alignedMs + policy.windowMs, current, previous }
}

/**
 * What a grant tells of a strict window: its sum, and how many parts there are, not the count of each. What is told of a grant
 * depends on none but the oldest, which frees a unit when it has passed, so that one has a unit here and the others none.
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

/** That the server answered what no script of ours answers. */
export function nonsense(reply: unknown): StoreUnavailableError {
  return new StoreUnavailableError(`Redis gave an answer that makes no sense: ${shown(reply)}.`, {
    kind: "invalid-answer",
  })
}

function shown(reply: unknown): string {
  const text = typeof reply === "string" ? reply : (JSON.stringify(reply) ?? typeof reply)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}
