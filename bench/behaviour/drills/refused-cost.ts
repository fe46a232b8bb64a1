import { stayInWindow } from "../../time.ts"
import { type Answer, askAtOnce, countAdmitted, isRefused } from "../client.ts"
import type { Drill } from "../drill.ts"
import { countCalls } from "../redis-calls.ts"

const LIMIT = 5
const WINDOW_MS = 600_000
const TIMES = 20
const AT_ONCE = 10
/**
 * The most Redis calls per refused request. The number is not 0, because a limiter must eventually call Redis again.
 */
const MOST = 0.05

export const refusedCost: Drill = {
  name: "refused cost",
  asks: `a client that is over its limit of ${LIMIT} sends ${TIMES * AT_ONCE} more requests`,
  wants: "all are refused, and refusals cost Redis next to nothing",
  async run(world) {
    const site = await world.start({ limits: [{ limit: LIMIT, windowMs: WINDOW_MS }] })
    const client = { from: "198.51.100.1" }
    await stayInWindow(WINDOW_MS, 5_000)
    const admitted = countAdmitted(await askAtOnce(site, client, LIMIT))
    await site.ask(client)
    const answers: Answer[] = []
    const calls = await countCalls(world.redis, async () => {
      for (let i = 0; i < TIMES; i++) answers.push(...(await askAtOnce(site, client, AT_ONCE)))
    })
    const refused = answers.filter(isRefused).length
    const sent = calls.sent / answers.length
    const run = calls.run / answers.length
    return {
      isGood: admitted === LIMIT && refused === answers.length && sent <= MOST,
      seen: `${refused} of ${answers.length} refused; ${sent.toFixed(2)} calls and ${run.toFixed(2)} commands of Redis each`,
      figures: { admitted, refused, asked: answers.length, calls: sent, commands: run },
    }
  },
}
