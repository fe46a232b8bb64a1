import { setTimeout } from "node:timers/promises"
import { untilMs } from "../../time.ts"
import { type Answer, isAdmitted, isRefused, type Question } from "../client.ts"
import type { Drill } from "../drill.ts"
import { toldWaitMs } from "../told-wait.ts"
import type { Site } from "../world.ts"

const LIMIT = 4
const WINDOW_MS = 4_000
const CLIENTS = 6
/** Between two requests of a client: longer for each client, so that they are refused at different parts of a second. */
const PACE_MS = 70
/** A window that begins in between lets a few more in. */
const MOST_ASKED = 3 * LIMIT
const LOOKS_EVERY_MS = 20
/** A header tells whole seconds, so the best one may tell nearly a second too much. */
const INHERENT_MS = 1_000
/** What looking every so often and a busy machine add. */
const TOLERANCE_MS = 100

interface Trial {
  readonly isTold: boolean
  /** Whether it was admitted when it had waited for as long as that. */
  readonly isAdmitted: boolean
  /** How much longer it was told to wait than its twin had to, which did the same and then asked all the time. */
  readonly tooLongMs: number
}

export const retry: Drill = {
  name: "retry",
  asks: `${CLIENTS} clients use up ${LIMIT} in ${WINDOW_MS / 1_000} s at different moments; each waits for as long as it was told, and asks once more`,
  wants:
    "each is then admitted, and none was told to wait a second or more too long, which is what whole seconds can cost",
  async run(world) {
    const site = await world.start({ limits: [{ limit: LIMIT, windowMs: WINDOW_MS }] })
    const trials = await Promise.all(Array.from({ length: CLIENTS }, (_, i) => tryOnce(site, i)))
    const told = trials.filter((one) => one.isTold)
    const admitted = trials.filter((one) => one.isAdmitted).length
    const tooLongMs = told.map((one) => Math.round(one.tooLongMs))
    const least = Math.min(...tooLongMs)
    const most = Math.max(...tooLongMs)
    return {
      isGood: admitted === CLIENTS && most <= INHERENT_MS + TOLERANCE_MS,
      seen:
        told.length === 0
          ? "no time is told"
          : `${admitted} of ${CLIENTS} admitted; told ${tellSpread(least, most)}`,
      figures: { admitted, clients: CLIENTS, tooLongMs },
    }
  },
}

function tellSpread(leastMs: number, mostMs: number): string {
  const seconds = (ms: number) => (Math.abs(ms) / 1_000).toFixed(1)
  // What looking every so often cannot tell apart is no time at all.
  if (leastMs > -LOOKS_EVERY_MS * 2) return `${seconds(leastMs)} to ${seconds(mostMs)} s too much`
  if (mostMs < 0) return `${seconds(mostMs)} to ${seconds(leastMs)} s too little`
  return `from ${seconds(leastMs)} s too little to ${seconds(mostMs)} s too much`
}

async function tryOnce(site: Site, i: number): Promise<Trial> {
  const client = { from: `198.51.100.${i + 1}` }
  const twin = { from: `203.0.113.${i + 1}` }
  const paceMs = PACE_MS * (i + 1)
  const refusals = await askUntilRefused(site, client, twin, paceMs)
  if (refusals === undefined) return { isTold: false, isAdmitted: false, tooLongMs: 0 }
  const [refusal] = refusals
  const toldMs = toldWaitMs(refusal.headers, Date.now())
  if (toldMs === undefined) return { isTold: false, isAdmitted: false, tooLongMs: 0 }
  const [isNowAdmitted, twinAdmittedMs] = await Promise.all([
    wait(site, client, refusal.answeredMs + toldMs),
    look(site, twin),
  ])
  // Of what the network and this process took, the limiter is charged with nothing; and who is admitted was not told too
  // little, however late its twin was seen to be.
  const tooLongMs = refusal.sentMs + toldMs - twinAdmittedMs
  return {
    isTold: true,
    isAdmitted: isNowAdmitted,
    tooLongMs: isNowAdmitted ? Math.max(0, tooLongMs) : tooLongMs,
  }
}

/** Both ask side by side until both are refused; undefined when that does not happen soon. */
async function askUntilRefused(
  site: Site,
  client: Question,
  twin: Question,
  paceMs: number,
): Promise<readonly [Answer, Answer] | undefined> {
  for (let n = 0; n < MOST_ASKED; n++) {
    const answers = await Promise.all([site.ask(client), site.ask(twin)])
    if (answers.every(isRefused)) return answers
    await setTimeout(paceMs)
  }
  return undefined
}

async function wait(site: Site, client: Question, untilToldMs: number): Promise<boolean> {
  // Whoever tells three windows tells too much; nobody has to wait for that here.
  if (untilToldMs - performance.now() > 3 * WINDOW_MS) return false
  await untilMs(untilToldMs)
  return isAdmitted(await site.ask(client))
}

/** When a client is admitted that asks all the time; it gives up after three windows. */
async function look(site: Site, twin: Question): Promise<number> {
  const startMs = performance.now()
  for (;;) {
    const answer = await site.ask(twin)
    if (isAdmitted(answer) || answer.answeredMs - startMs > 3 * WINDOW_MS) return answer.answeredMs
    await setTimeout(LOOKS_EVERY_MS)
  }
}
