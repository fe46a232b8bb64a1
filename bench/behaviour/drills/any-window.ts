import { setTimeout } from "node:timers/promises"
import { nextMultiple, untilMs } from "../../time.ts"
import { type Answer, askAtOnce, isAdmitted } from "../client.ts"
import type { Drill } from "../drill.ts"
import { mostWithin } from "../most-within.ts"

const LIMIT = 10
const WINDOW_MS = 2_000
/** Before the end of a window, and long enough for a busy machine to answer the whole limit. */
const BEFORE_MS = 250
const EVERY_MS = 40
const AT_ONCE = 3

/**
 * One client that opens its window just after one since the epoch begins, so that both ways of laying windows have the
 * same end; spends the rest of its limit just before that end, and goes on asking until the next one.
 */
export const anyWindow: Drill = {
  name: "any window",
  asks: `one client may ask ${LIMIT} times in ${WINDOW_MS / 1_000} s: it holds back, then floods around the end of a window and through the next`,
  wants: `no ${WINDOW_MS / 1_000} s have more than ${LIMIT} admissions, wherever they begin`,
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
    for (const some of await Promise.all(pending)) answers.push(...some)
    const admitted = answers.filter(isAdmitted)
    const most = mostWithin(admitted, WINDOW_MS)
    return {
      // Fewer would be a limiter that refuses what it owes.
      isGood: most === LIMIT,
      seen: `${most} of ${LIMIT}`,
      figures: { most, limit: LIMIT, asked: answers.length, admitted: admitted.length },
    }
  },
}
