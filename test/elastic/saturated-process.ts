// This program is a process with its own elastic rule. The process saturates its event loop in two ways and rests
// after each. The process prints a line of JSON when the decision on a request above the limit changes. The process
// ends by itself with its limiter open.
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises"
import { createLimiter } from "../../packages/core/src/index.ts"

/** One printed line. A change of the decision. Times are in milliseconds since the phase began. */
export interface Turn {
  readonly phase: Phase
  readonly becomes: "elastic" | "hard"
  readonly afterMs: number
  /** The last time at which a request above the limit was admitted in this phase, or 0. */
  readonly elasticUntilMs: number
}

/** In `busy`, the event loop turns but is never idle. In `blocked`, the event loop does not turn at all. */
export type Phase = "start" | "busy" | "rest" | "blocked" | "rest again"

const BUSY_MS = 1_300
const BLOCKED_MS = 600
/** The duration of one turn of the busy event loop. */
const TURN_MS = 20

const limiter = createLimiter({ limit: 1, window: "1 day", field: "service", throttle: { kind: "elastic" } })
await limiter.decide({})

let becomes: Turn["becomes"] | undefined
let phase: Phase = "start"
let phaseStartedMs = performance.now()
let elasticUntilMs = 0

/** Requests a unit above the limit. Prints a line when the decision differs from the previous one. */
async function ask(): Promise<Turn["becomes"]> {
  const afterMs = performance.now() - phaseStartedMs
  const { allowed } = await limiter.decide({})
  const answer = allowed ? "elastic" : "hard"
  if (allowed) elasticUntilMs = afterMs
  if (answer !== becomes) {
    becomes = answer
    const turn: Turn = { phase, becomes, afterMs, elasticUntilMs }
    console.log(JSON.stringify(turn))
  }
  return answer
}

function enter(next: Phase): void {
  phase = next
  phaseStartedMs = performance.now()
  elasticUntilMs = 0
}

function spin(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

async function askUntilElastic(): Promise<void> {
  while ((await ask()) !== "elastic") await pause(20)
}

await askUntilElastic()
enter("busy")
while (performance.now() < phaseStartedMs + BUSY_MS) {
  spin(TURN_MS)
  await ask()
  await nextTurn()
}
enter("rest")
await askUntilElastic()
enter("blocked")
spin(BLOCKED_MS)
// Send the request in the same turn, so that nothing on the event loop can have detected the saturation.
await ask()
enter("rest again")
await askUntilElastic()
