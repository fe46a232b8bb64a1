import { nextMultiple, untilMs } from "../../time.ts"
import { type Answer, askAtOnce, countAdmitted, isRefused, type Question } from "../client.ts"
import type { Drill } from "../drill.ts"
import { measureCalls } from "../redis-calls.ts"
import type { Site } from "../world.ts"

// These limits are ten a minute and 500 an hour, scaled down.
const SHORT = { limit: 4, windowMs: 2_000 }
const LONG = { limit: 6, windowMs: 8_000 }
/** Two windows, after which every algorithm has forgotten the first one. */
const SHORT_OPEN_AFTER_MS = 2 * SHORT.windowMs + 200
const KNOCKS = 8
/** A drill makes several attempts, because the machine may be busy for a moment. */
const MOST_ATTEMPTS = 6
/** Admitted requests whose calls are counted. */
const MEASURED = 5

/**
 * The numbers of admitted requests of two clients. Both sent the same requests, but one of them also sent requests
 * ("knocks") while a limit refused it.
 */
interface Pair {
  readonly patient: number
  readonly knocking: number
  readonly knocksRefused: boolean
}

export const severalLimits: Drill = {
  name: "several",
  asks: `two limits apply, ${SHORT.limit} in ${SHORT.windowMs / 1_000} s and ${LONG.limit} in ${LONG.windowMs / 1_000} s; one of two clients keeps asking while one of the limits refuses it`,
  wants: "a refusal by one limit takes nothing from the other, so both clients later get the same admissions",
  async run(world) {
    const site = await world.start({ limits: [SHORT, LONG] })
    const { sent: calls } = await measureCalls(world.redis, site, MEASURED)
    const { byShort, byLong } = await knockAtBoth(site)
    const isGood = [byShort, byLong].every((one) => one.knocksRefused && one.knocking === one.patient)
    return {
      // The patient clients show that both limits exist and admit requests again.
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

/**
 * Uses up the short limit, which then refuses requests. When the short limit admits requests again, the long limit
 * must still have its remaining units.
 */
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
 * Uses up both limits, the long one last. When the short limit already admits requests again, the long limit still
 * refuses them until its own window ends. After that, both limits admit requests. Returns undefined if the machine
 * was too slow.
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
  // If the attempt took longer, the short limit would admit requests again, however many units the knocks had taken.
  return performance.now() - knockedMs < SHORT.windowMs ? pair : undefined
}

/** Sends `times` requests of both clients. Returns the time at which all responses had arrived. */
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
