import { setTimeout } from "node:timers/promises"
import { untilMs } from "../../time.ts"
import { type Answer, isAdmitted, isRefused, type Question } from "../client.ts"
import type { Drill } from "../drill.ts"
import { toldWaitMs } from "../told-wait.ts"
import type { Site } from "../world.ts"

const LIMIT = 4
const WINDOW_MS = 4_000
const CLIENTS = 6
/**
 * The pause between two requests is this time multiplied by the client's number, so that refusals occur at different
 * fractions of a second.
 */
const PACE_MS = 70
/** The number is larger than the limit, because a window that begins during the requests admits a few more. */
const MOST_ASKED = 3 * LIMIT
const LOOKS_EVERY_MS = 20
/** A header contains whole seconds, so even a perfect limiter's wait may be almost a second too long. */
const INHERENT_MS = 1_000
/** Tolerance for the interval of the twin's requests and for a busy machine. */
const TOLERANCE_MS = 100

interface Trial {
  readonly isTold: boolean
  /** Whether the client was admitted after it had waited for the stated time. */
  readonly isAdmitted: boolean
  /**
   * The stated wait minus the real wait of the client's twin, which sent the same requests and then retried every 20
   * ms.
   */
  readonly tooLongMs: number
}

export const retry: Drill = {
  name: "retry",
  asks: `${CLIENTS} clients use up their limit of ${LIMIT} in ${WINDOW_MS / 1_000} s at different times; each waits for the stated time, and asks once more`,
  wants:
    "each is then admitted, and the stated time is less than a second too long, the most that rounding up to whole seconds adds",
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
  // The twin sends requests at intervals, so a difference shorter than an interval is ignored.
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
  // Delays of the network and of this process do not count against the limiter. If the client was admitted, its stated
  // wait was not too short, even if its twin was admitted later.
  const tooLongMs = refusal.sentMs + toldMs - twinAdmittedMs
  return {
    isTold: true,
    isAdmitted: isNowAdmitted,
    tooLongMs: isNowAdmitted ? Math.max(0, tooLongMs) : tooLongMs,
  }
}

/**
 * Sends requests of both clients at the same time until both are refused. Returns undefined if that does not happen
 * soon.
 */
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
  // A wait of more than three windows is too long anyway, so the drill does not wait that long.
  if (untilToldMs - performance.now() > 3 * WINDOW_MS) return false
  await untilMs(untilToldMs)
  return isAdmitted(await site.ask(client))
}

/**
 * Sends a request of the twin every 20 ms. Returns the time at which the twin was admitted, or at which it gave up
 * after three windows.
 */
async function look(site: Site, twin: Question): Promise<number> {
  const startMs = performance.now()
  for (;;) {
    const answer = await site.ask(twin)
    if (isAdmitted(answer) || answer.answeredMs - startMs > 3 * WINDOW_MS) return answer.answeredMs
    await setTimeout(LOOKS_EVERY_MS)
  }
}
