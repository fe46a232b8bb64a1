import { stayInWindow } from "../../time.ts"
import { askAtOnce, countAdmitted, isAdmitted, isRefused } from "../client.ts"
import type { Drill } from "../drill.ts"
import type { Site } from "../world.ts"

const LIMIT = 5
const WINDOW_MS = 3_600_000
/**
 * The default of @fastify/rate-limit. Other stores use the same bound if they have such an option, because filling a
 * larger one, such as a million addresses, would take minutes.
 */
const MAX_KEYS = 5_000
/** Each half of the flood alone exceeds the bound. */
const HALF = 5_200
const IN_FLIGHT = 32

export const junkKeys: Drill = {
  name: "junk keys",
  asks: `a client is refused for an hour; then ${2 * HALF} requests come from as many addresses (counters in memory, at most ${MAX_KEYS} if there is a bound)`,
  wants:
    "the client is still refused (also shown: the growth of memory in the second half, which a bound stops)",
  isAlone: true,
  async run(world) {
    const site = await world.start({
      limits: [{ limit: LIMIT, windowMs: WINDOW_MS }],
      counts: "memory",
      maxKeys: MAX_KEYS,
    })
    await stayInWindow(WINDOW_MS, 20_000)
    const blocked = { from: "203.0.113.1" }
    const before = await askAtOnce(site, blocked, LIMIT + 1)
    if (countAdmitted(before) !== LIMIT) {
      const admitted = countAdmitted(before)
      return { isGood: false, seen: `admitted ${admitted} of ${LIMIT} at first`, figures: { admitted } }
    }
    const admittedJunk: number[] = []
    const memory: number[] = []
    for (const half of [0, 1]) {
      admittedJunk.push(await flood(site, half * HALF))
      memory.push(await site.app.memory())
    }
    const after = await site.ask(blocked)
    const [afterFirst = 0, afterSecond = 0] = memory
    const isForgotten = isAdmitted(after)
    return {
      isGood: isRefused(after) && admittedJunk.every((count) => count === HALF),
      seen: `${isForgotten ? "forgotten" : "still refused"}; memory ${megabytes(afterSecond - afterFirst)} in the second half`,
      figures: { isForgotten, admittedJunk, memory, maxKeys: MAX_KEYS },
    }
  },
}

function megabytes(bytes: number): string {
  const rounded = (bytes / 1e6).toFixed(1)
  return `${bytes >= 0 ? "+" : ""}${rounded} MB`
}

/** Sends `HALF` requests, each from another address. Returns the number of admitted requests. */
async function flood(site: Site, first: number): Promise<number> {
  let next = first
  let admitted = 0
  const runLane = async () => {
    while (next < first + HALF) {
      const n = next++
      if (isAdmitted(await site.ask({ from: `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}` }))) admitted++
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, runLane))
  return admitted
}
