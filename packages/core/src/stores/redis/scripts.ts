import { createHash } from "node:crypto"
import call from "./scripts/call.lua"
import counter from "./scripts/counter.lua"
import giveBack from "./scripts/give-back.lua"
import layout from "./scripts/layout.lua"
import peek from "./scripts/peek.lua"
import take from "./scripts/take.lua"
import takeOne from "./scripts/take-one.lua"
import takeWithCare from "./scripts/take-with-care.lua"

/** A Lua script with the digest that EVALSHA calls it by. */
export interface Script {
  readonly text: string
  readonly sha: string
}

/** Takes the units of requests, each all or nothing. */
export const TAKE: Script = script(
  `${layout}\n${takeOne}\n${call}\nlocal function functions()\n${counter}\n${takeWithCare}\nend\n${take}`,
)
/** Tells what counters hold. */
export const PEEK: Script = script(`${layout}\n${call}\n${counter}\n${peek}`)
/** Gives units back to the windows they were taken in. */
export const GIVE_BACK: Script = script(`${layout}\n${call}\n${counter}\n${giveBack}`)

function script(text: string): Script {
  return { text, sha: createHash("sha1").update(text).digest("hex") }
}
