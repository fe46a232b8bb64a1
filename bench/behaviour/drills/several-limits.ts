import { nextMultiple, untilMs } from "../../time.ts"
import { type Answer, askAtOnce, countAdmitted, isRefused, type Question } from "../client.ts"
import type { Drill } from "../drill.ts"
import { measureCalls } from "../redis-calls.ts"
import type { Site } from "../world.ts"

// Ten a minute and 500 an hour, scaled down.
const SHORT = { limit: 4, windowMs: 2_000 }
const LONG = { limit: 6, windowMs: 8_000 }
/** Two windows, which is when the last way of counting has forgotten what was in one. */
const SHORT_OPEN_AFTER_MS = 2 * SHORT.windowMs + 200
const KNOCKS = 8
const MOST_ATTEMPTS = 3
/** Admitted requests whose calls are counted. */
const MEASURED = 5

/** What two clients were admitted who did the same, but that one of them knocked where it could only be refused. */
interface Pair {
  readonly patient: number
  readonly knocking: number
  readonly knocksRefused: boolean
}

export const severalLimits: Drill = {
  name: "several",
  asks: `${SHORT.limit} in ${SHORT.windowMs / 1_000} s and ${LONG.limit} in ${LONG.windowMs / 1_000} s at once: one of two clients knocks while one of the limits refuses it`,
  wants: "a refusal by one limit takes nothing from the other, so both clients are later admitted alike",
  async run(world) {
    const site = await world.start({ limits: [SHORT, LONG] })
    const { sent: calls } = await measureCalls(world.redis, site, MEASURED)
    const { byShort, byLong } = await knockAtBoth(site)
    const isGood = [byShort, byLong].every((one) => one.knocksRefused && one.knocking === one.patient)
    return {
      // The patient ones show that both limits are there, and open again.
      isGood: isGood && byShort.patient === LONG.limit - SHORT.limit && byLong.patient === 1,
      seen: `after refusals by the short one ${byShort.knocking} of ${byShort.patient} admitted, by the long one ${byLong.knocking} of ${byLong.patient}; ${calls.toFixed(1)} calls of Redis a request`,
      figures: { byShort, byLong, calls },
    }
  },
}

async function knockAtBoth(site: Site): Promise<{ readonly byShort: Pair; readonly byLong: Pair }> {
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    const startMs = nextMultiple(LONG.windowMs) + 10
    await untilMs(startMs)
    const [byShort, byLong] = await Promise.all([
      refusedByShort(site, attempt),
      refusedByLong(site, startMs, attempt),
    ])
    if (byLong !== undefined) return { byShort, byLong }
  }
  throw new Error(`this machine is too slow: ${MOST_ATTEMPTS} attempts took too long`)
}

/** The short limit is used up, and refuses; when it is open again, the long one has what the short one left. */
async function refusedByShort(site: Site, attempt: number): Promise<Pair> {
  const [patient, knocking] = [
    { from: `198.51.100.${100 + attempt}` },
    { from: `203.0.113.${100 + attempt}` },
  ]
  const spentMs = await spend(site, patient, knocking, SHORT.limit)
  const knocks = await askAtOnce(site, knocking, KNOCKS)
  await untilMs(spentMs + SHORT_OPEN_AFTER_MS)
  return compare(site, patient, knocking, SHORT.limit, knocks)
}

/**
 * Undefined when the machine was too slow for it. Both are used up, the long one last. It still refuses when the short one has been open again for long, up to the end of
 * its window; then both are open.
 */
async function refusedByLong(site: Site, startMs: number, attempt: number): Promise<Pair | undefined> {
  const [patient, knocking] = [{ from: `198.51.100.${attempt}` }, { from: `203.0.113.${attempt}` }]
  const spentMs = await spend(site, patient, knocking, SHORT.limit)
  await untilMs(spentMs + SHORT_OPEN_AFTER_MS)
  await spend(site, patient, knocking, LONG.limit - SHORT.limit)
  await untilMs(startMs + LONG.windowMs - 500)
  const knockedMs = performance.now()
  const knocks = await askAtOnce(site, knocking, KNOCKS)
  await untilMs(spentMs + LONG.windowMs + 700)
  const pair = await compare(site, patient, knocking, 1, knocks)
  // Later, the short limit would be open again, whatever the knocks had taken from it.
  return performance.now() - knockedMs < SHORT.windowMs ? pair : undefined
}

/** Both ask so many times; yields when all was answered. */
async function spend(site: Site, one: Question, other: Question, times: number): Promise<number> {
  await Promise.all([askAtOnce(site, one, times), askAtOnce(site, other, times)])
  return performance.now()
}

async function compare(
  site: Site,
  patient: Question,
  knocking: Question,
  times: number,
  knocks: readonly Answer[],
): Promise<Pair> {
  const [one, other] = await Promise.all([askAtOnce(site, patient, times), askAtOnce(site, knocking, times)])
  return {
    patient: countAdmitted(one),
    knocking: countAdmitted(other),
    knocksRefused: knocks.every(isRefused),
  }
}
