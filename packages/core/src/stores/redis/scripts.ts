import { createHash } from "node:crypto"
import bucketLevel from "./scripts/bucket-level.lua"
import call from "./scripts/call.lua"
import counter from "./scripts/counter.lua"
import digits from "./scripts/digits.lua"
import layout from "./scripts/layout.lua"
import log from "./scripts/log.lua"
import orForget from "./scripts/or-forget.lua"
import packedCounts from "./scripts/packed-counts.lua"
import peek from "./scripts/peek.lua"
import penalty from "./scripts/penalty.lua"
import refund from "./scripts/refund.lua"
import strictHash from "./scripts/strict-hash.lua"
import strictNext from "./scripts/strict-next.lua"
import strictNumber from "./scripts/strict-number.lua"
import subWindows from "./scripts/sub-windows.lua"
import take from "./scripts/take.lua"
import takeMany from "./scripts/take-many.lua"
import takeOne from "./scripts/take-one.lua"
import takeWithCare from "./scripts/take-with-care.lua"

/** A Lua script with the digest that EVALSHA calls it by. */
export interface Script {
  readonly text: string
  readonly sha: string
}

/** How counters of every kind are read and written. */
const counters = `${packedCounts}\n${subWindows}\n${log}\n${bucketLevel}\n${penalty}\n${strictHash}\n${counter}`

/** Takes the units of requests, each all or nothing. */
export const TAKE: Script = script(
  `${layout}\n${takeOne}\n${takeMany}\n${call}\n${orForget}\n${digits}\n${strictNumber}\n${strictNext}\nlocal function functions()\n${counters}\n${takeWithCare}\nend\n${take}`,
)
/** Tells what counters hold. */
export const PEEK: Script = script(
  `${layout}\n${call}\n${orForget}\n${digits}\n${strictNumber}\n${counters}\n${peek}`,
)
/** Gives units back to the windows they were taken in. */
export const GIVE_BACK: Script = script(
  `${layout}\n${call}\n${orForget}\n${digits}\n${strictNumber}\n${counters}\n${refund}`,
)

function script(text: string): Script {
  return { text, sha: createHash("sha1").update(text).digest("hex") }
}
