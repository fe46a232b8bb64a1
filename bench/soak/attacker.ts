import { setPriority } from "node:os"
import { ATTACKS } from "./attacks.ts"
import type { Target } from "./target.ts"

// One attacker, in a process of its own: it goes on until its parent ends it.

const [kind = "", from = "", target = "null"] = process.argv.slice(2)
// An attacker has a machine of its own: here it gets only the CPU time that the service and its callers leave.
setPriority(19)
process.on("disconnect", () => process.exit(0))
process.on("uncaughtException", () => undefined)
await ATTACKS[kind]?.(JSON.parse(target) as Target, from)
