import { stayInWindow } from "../../time.ts"
import { askAtOnce, countAdmitted, isRefused } from "../client.ts"
import type { Drill } from "../drill.ts"
import { AHEAD_MS } from "../world.ts"

const LIMIT = 10
/** The window is shorter than the clock difference, so it is over by the clock of the other process. */
const WINDOW_MS = 10_000

export const clockOff: Drill = {
  name: "clock off",
  asks: `a client uses up its limit of ${LIMIT} in ${WINDOW_MS / 1_000} s; then it asks a process whose clock is ${AHEAD_MS / 1_000} s ahead, the first process, and the second again`,
  wants: "both processes count the same window, so no further request is admitted",
  places: ["ahead"],
  async run(world) {
    const limits = [{ limit: LIMIT, windowMs: WINDOW_MS }]
    const [site, ahead] = [await world.start({ limits }), await world.start({ limits }, "ahead")]
    const client = { from: "198.51.100.1" }
    await Promise.all([site.ask({ from: "192.0.2.1" }), ahead.ask({ from: "192.0.2.2" })])
    await stayInWindow(WINDOW_MS, 3_000)
    const first = await askAtOnce(site, client, LIMIT)
    const later = [
      ...(await askAtOnce(ahead, client, LIMIT)),
      ...(await askAtOnce(site, client, LIMIT)),
      ...(await askAtOnce(ahead, client, LIMIT)),
    ]
    const extra = countAdmitted(later)
    return {
      isGood: countAdmitted(first) === LIMIT && later.every(isRefused),
      seen: extra === 0 ? `${countAdmitted(first)} admitted, none more` : `${extra} more admitted`,
      figures: { admitted: countAdmitted(first), extra, limit: LIMIT },
    }
  },
}
