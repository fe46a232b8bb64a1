import { ceilingOf, type Policy } from "@sluice/core/stores"
import { type CallTime, detailOf, kindOf } from "./script-input.ts"
import { nonsense, type Reply, readReply } from "./script-reply.ts"

// Encodes the arguments and decodes the reply for a call of one check that can be counted in place. This is the twin
// of take-one.lua.

/** Weight of the milliseconds in a reply that is one integer. The counter's state is below it. */
const STATE = 2 ** 42
/** The character of the digit 0. The digits are the 64 characters that begin with "0", as in digits.lua. */
const ZERO = 48

/**
 * A cache of the encoded digits of each policy. There are only a few policies, and each exists as long as its rule.
 */
const texts = new WeakMap<Policy, string>()

/** Returns the script's arguments for a number of equal requests. */
export function packedArgs(
  policy: Policy,
  cost: number,
  times: number,
  { nowMs, untilMs = 0 }: CallTime,
): readonly string[] {
  let text = texts.get(policy)
  if (text === undefined) {
    const { windowMs } = policy
    text =
      digits(kindOf(policy), 1) +
      digits(windowMs, 6) +
      digits(ceilingOf(policy), 4) +
      digits(detailOf(policy), 2)
    texts.set(policy, text)
  }
  text +=
    fourDigits(Math.floor(untilMs / 2 ** 24)) + fourDigits(untilMs) + fourDigits(cost) + digits(times, 2)
  return nowMs === undefined ? [text] : [text, String(nowMs)]
}

/**
 * Returns the time of the decision and the state. If the reply is one integer, it also contains the milliseconds that
 * were left before `untilMs`.
 * @throws StoreUnavailableError if the reply cannot come from the script.
 */
export function packedReply(reply: unknown, { nowMs, untilMs }: CallTime): Reply {
  if (Array.isArray(reply)) return readReply(reply)
  const number = Number(reply)
  const latestMs = nowMs ?? untilMs
  if (!(Number.isSafeInteger(number) && number > STATE) || latestMs === undefined) throw nonsense(reply)
  const state = number % STATE
  const spareMs = (number - state) / STATE - 1
  return [latestMs - spareMs, state]
}

function digits(number: number, width: number): string {
  let text = ""
  let rest = number
  for (let i = 0; i < width; i++) {
    text = String.fromCharCode(ZERO + (rest % 64)) + text
    rest = Math.floor(rest / 64)
  }
  return text
}

/** Returns the last four digits. Contains no loop, because it runs for every call. */
function fourDigits(number: number): string {
  const first = ZERO + ((number >>> 18) & 63)
  const second = ZERO + ((number >>> 12) & 63)
  return String.fromCharCode(first, second, ZERO + ((number >>> 6) & 63), ZERO + (number & 63))
}
