import { createHash } from "node:crypto"
import activity from "./scripts/activity.lua"
import beginWindow from "./scripts/begin-window.lua"
import bucketLevel from "./scripts/bucket-level.lua"
import call from "./scripts/call.lua"
import counter from "./scripts/counter.lua"
import digits from "./scripts/digits.lua"
import formulas from "./scripts/formulas.lua"
import input from "./scripts/input.lua"
import layout from "./scripts/layout.lua"
import log from "./scripts/log.lua"
import orForget from "./scripts/or-forget.lua"
import packedCounts from "./scripts/packed-counts.lua"
import peek from "./scripts/peek.lua"
import penalty from "./scripts/penalty.lua"
import refund from "./scripts/refund.lua"
import refundQuick from "./scripts/refund-quick.lua"
import refundSlow from "./scripts/refund-slow.lua"
import strictHash from "./scripts/strict-hash.lua"
import strictNext from "./scripts/strict-next.lua"
import strictNumber from "./scripts/strict-number.lua"
import subWindows from "./scripts/sub-windows.lua"
import take from "./scripts/take.lua"
import takeMany from "./scripts/take-many.lua"
import takeOne from "./scripts/take-one.lua"
import takeSlow from "./scripts/take-slow.lua"

/** A Lua script, and the SHA-1 digest that EVALSHA takes. */
export interface Script {
  readonly text: string
  readonly sha: string
}

/** The script parts that read a script's input, and that read and write numbers. */
const READING = [call, orForget, digits, strictNumber]

/** The script parts that read and write counters of every kind. */
const COUNTERS = [packedCounts, subWindows, log, bucketLevel, penalty, strictHash, counter]

/** Takes the units of requests. Each request takes either all of its units or none. */
export const TAKE: Script = script([
  ...[takeOne, input, takeMany, ...READING, beginWindow, strictNext],
  ...["local function functions()", ...COUNTERS, takeSlow, "end", take],
])
/** Reads the states of counters. */
export const PEEK: Script = script([input, ...READING, ...COUNTERS, peek])
/** Refunds units to the windows from which they were taken. */
export const REFUND: Script = script([
  ...[input, refundQuick, ...READING, beginWindow, strictNext],
  ...["local function functions()", ...COUNTERS, refundSlow, "end", refund],
])

/** Exchanges what processes have recorded. */
export const ACTIVITY: Script = script([orForget, activity])

/** Concatenates the parts of a script. Replaces each USE line with the text of the formula whose name it contains. */
function script(parts: readonly string[]): Script {
  const named = formulas.split(/^-- FORMULA (.+)\n/m)
  const text = [layout, ...parts].join("\n").replace(/^ *-- USE (.+)$/gm, (_, name: string) => {
    const at = named.indexOf(name)
    if (at === -1) throw new Error(`formulas.lua has no formula ${name}.`)
    return named[at + 1] as string
  })
  return { text, sha: createHash("sha1").update(text).digest("hex") }
}
