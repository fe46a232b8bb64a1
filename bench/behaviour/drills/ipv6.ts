import { stayInWindow } from "../../time.ts"
import { type Answer, countAdmitted, isAdmitted, isRefused } from "../client.ts"
import type { Drill } from "../drill.ts"

const LIMIT = 5
const WINDOW_MS = 600_000
const ADDRESSES = 20

export const ipv6: Drill = {
  name: "IPv6",
  asks: `${ADDRESSES} addresses of one /64 ask once each, with a limit of ${LIMIT} per client; so do three unrelated clients, and one IPv4 client in two spellings`,
  wants: `${LIMIT} requests of the /64 are admitted, because one host has a whole /64; the other clients are counted separately`,
  async run(world) {
    const site = await world.start({ limits: [{ limit: LIMIT, windowMs: WINDOW_MS }] })
    await stayInWindow(WINDOW_MS, 5_000)
    const ofOne: Answer[] = []
    for (let i = 0; i < ADDRESSES; i++) {
      ofOne.push(await site.ask({ from: `2001:db8:0:1:${(i * 3_001).toString(16)}::${i + 1}` }))
    }
    const others = [
      await site.ask({ from: "2001:db8:ffff:1::1" }),
      await site.ask({ from: "198.51.100.1" }),
      await site.ask({ from: "198.51.100.2" }),
    ]
    // An IPv4 address, and the same address as a dual-stack socket reports it.
    const spelled: Answer[] = []
    for (let i = 0; i < LIMIT; i++) {
      spelled.push(await site.ask({ from: "203.0.113.7" }), await site.ask({ from: "::ffff:203.0.113.7" }))
    }
    const admitted = countAdmitted(ofOne)
    return {
      isGood:
        admitted === LIMIT &&
        ofOne.filter(isRefused).length === ADDRESSES - LIMIT &&
        others.every(isAdmitted) &&
        countAdmitted(spelled) === LIMIT,
      seen: `${admitted} of ${LIMIT} for a /64, ${countAdmitted(spelled)} of ${LIMIT} for one IPv4 address in two spellings, others ${others.every(isAdmitted) ? "apart" : "mixed up"}`,
      figures: { admitted, spelled: countAdmitted(spelled), others: countAdmitted(others), limit: LIMIT },
    }
  },
}
