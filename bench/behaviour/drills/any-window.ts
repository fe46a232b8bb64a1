import { setTimeout } from "node:timers/promises"
import { nextMultiple, untilMs } from "../../time.ts"
import { type Answer, askAtOnce, isAdmitted } from "../client.ts"
import type { Drill } from "../drill.ts"
import { mostWithin } from "../most-within.ts"

const LIMIT = 10
const WINDOW_MS = 2_000
/**
 * Time before the end of a window at which the flood begins. Even a busy machine can serve the whole limit in this
 * time.
 */
const BEFORE_MS = 500
const EVERY_MS = 40
const AT_ONCE = 3

/**
 * One client sends its first request just after a window since the epoch begins. Windows since the epoch and windows
 * since the first request then end at the same time. The client uses up its limit just before that end, and continues
 * to send requests until the next end.
 */
export const anyWindow: Drill = {
  name: "any window",
  asks: `one client with a limit of ${LIMIT} in ${WINDOW_MS / 1_000} s waits, then floods around the end of a window and through the next`,
  wants: `no stretch of ${WINDOW_MS / 1_000} s has more than ${LIMIT} admissions, wherever it begins`,
  async run(world) {
    const site = await world.start({ limits: [{ limit: LIMIT, windowMs: WINDOW_MS }] })
    const question = { from: "198.51.100.1" }
    const startMs = nextMultiple(WINDOW_MS)
    await untilMs(startMs + 5)
    const answers: Answer[] = [await site.ask(question)]
    await untilMs(startMs + WINDOW_MS - BEFORE_MS)
    answers.push(...(await askAtOnce(site, question, LIMIT)))
    const pending: Promise<Answer[]>[] = []
    while (performance.now() < startMs + 2 * WINDOW_MS + BEFORE_MS) {
      pending.push(askAtOnce(site, question, AT_ONCE))
      await setTimeout(EVERY_MS)
    }
    // A correct limiter admits the whole limit before it refuses a request. On a slow machine, the first request may
    // be outside the window by then.
    const atFirst = Math.min(answers.filter(isAdmitted).length, LIMIT)
    for (const some of await Promise.all(pending)) answers.push(...some)
    const admitted = answers.filter(isAdmitted)
    // Slow responses hide admissions from `mostWithin`, so the number of requests admitted at first is a lower bound.
    const most = Math.max(mostWithin(admitted, WINDOW_MS), atFirst)
    return {
      // A limiter that admits fewer requests refuses some that are within the limit.
      isGood: most === LIMIT,
      seen: `${most} of ${LIMIT}`,
      figures: { most, limit: LIMIT, asked: answers.length, admitted: admitted.length },
    }
  },
}
