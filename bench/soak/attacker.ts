import { setPriority } from "node:os"
import { ATTACKS } from "./attacks.ts"
import type { Target } from "./target.ts"

// Runs one attacker in its own process, until the parent process ends it.

const [kind = "", from = "", target = "null"] = process.argv.slice(2)
// A real attacker uses its own machine, so here it uses only CPU time that the service and its callers do not need.
setPriority(19)
process.on("disconnect", () => process.exit(0))
process.on("uncaughtException", () => undefined)
await ATTACKS[kind]?.(JSON.parse(target) as Target, from)
