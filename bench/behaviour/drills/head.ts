import { stayInWindow } from "../../time.ts"
import { type Answer, countAdmitted, isRefused } from "../client.ts"
import type { Drill } from "../drill.ts"

const LIMIT = 4
const WINDOW_MS = 600_000

export const head: Drill = {
  name: "GET and HEAD",
  asks: `a client sends ${LIMIT} GET and ${LIMIT} HEAD requests, in turn, to a route with a limit of ${LIMIT}`,
  wants: `${LIMIT} requests are admitted in all, because a HEAD costs the handler as much as a GET`,
  async run(world) {
    const site = await world.start({ limits: [{ limit: LIMIT, windowMs: WINDOW_MS }], mount: "route" })
    await stayInWindow(WINDOW_MS, 5_000)
    const gets: Answer[] = []
    const heads: Answer[] = []
    for (let i = 0; i < LIMIT; i++) {
      gets.push(await site.ask({ from: "198.51.100.1" }))
      heads.push(await site.ask({ from: "198.51.100.1", method: "HEAD" }))
    }
    const all = [...gets, ...heads]
    const admitted = countAdmitted(all)
    return {
      isGood: admitted === LIMIT && all.filter(isRefused).length === LIMIT && countAdmitted(heads) > 0,
      seen: `${admitted} of ${LIMIT} (${countAdmitted(gets)} GET, ${countAdmitted(heads)} HEAD)`,
      figures: { gets: countAdmitted(gets), heads: countAdmitted(heads), limit: LIMIT },
    }
  },
}
