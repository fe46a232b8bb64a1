import { stayInWindow } from "../../time.ts"
import { askAtOnce, countAdmitted, isRefused } from "../client.ts"
import type { Drill } from "../drill.ts"

const LIMIT = 50
const WINDOW_MS = 600_000
const TIMES = 100
const CLIENTS = 3

export const exact: Drill = {
  name: "exact",
  asks: `${CLIENTS} clients in turn, each with a limit of ${LIMIT} in ten minutes, send ${TIMES} requests to each of two processes at the same time`,
  wants: `exactly ${LIMIT} requests of each client are admitted`,
  places: ["second"],
  isAlone: true,
  async run(world) {
    const limits = [{ limit: LIMIT, windowMs: WINDOW_MS }]
    const sites = [await world.start({ limits }, "first"), await world.start({ limits }, "second")]
    // The first requests of a process compile the hot path.
    for (const site of sites) await askAtOnce(site, { from: "192.0.2.1" }, 20)
    await stayInWindow(WINDOW_MS, 5_000)
    const admitted: number[] = []
    let refused = 0
    for (let i = 0; i < CLIENTS; i++) {
      const question = { from: `198.51.100.${i + 1}` }
      const answers = (await Promise.all(sites.map((site) => askAtOnce(site, question, TIMES)))).flat()
      admitted.push(countAdmitted(answers))
      refused += answers.filter(isRefused).length
    }
    const asked = CLIENTS * TIMES * sites.length
    return {
      isGood: admitted.every((count) => count === LIMIT) && refused === asked - CLIENTS * LIMIT,
      seen: `${admitted.join(", ")} of ${LIMIT}`,
      figures: { admitted, refused, asked, limit: LIMIT },
    }
  },
}
