import { setTimeout } from "node:timers/promises"
import type { RedisServer } from "../redis/server.ts"
import { stayInWindow } from "../time.ts"
import { type Answer, askAtOnce, countAdmitted, isRefused } from "./client.ts"
import type { Finding } from "./drill.ts"
import type { Site, World } from "./world.ts"

const LIMIT = 10
const WINDOW_MS = 600_000
/** Number of clients that send requests at the same time, when the outage begins and again later. */
const CLIENTS = 5
/** Requests of one client during the outage, to find out whether the client is still limited. */
const FLOOD = 3 * LIMIT
/**
 * This is Sluice's default. rate-limiter-flexible has such a timeout too, but its documentation recommends no value.
 */
const STORE_TIMEOUT_MS = 50
const RECOVERS_WITHIN_MS = 8_000
const MOST_TRIES = 10

/** A way to make Redis unavailable and available again. */
export interface Outage {
  /** Whether the app starts during the outage. */
  readonly isAtStart: boolean
  begin(redis: RedisServer): Promise<void> | void
  end(redis: RedisServer): Promise<void> | void
}

/** The responses during the outage. */
interface During {
  readonly site: Site
  readonly first: readonly Answer[]
  /** Empty if the first requests received no response, because each later request would wait for its timeout too. */
  readonly later: readonly Answer[]
  readonly flood: readonly Answer[]
}

/**
 * Sends requests when the outage begins, sends more later, and then sends many requests of one client. Then measures
 * the time to recover.
 */
export async function runOutage(world: World, outage: Outage): Promise<Finding> {
  await stayInWindow(WINDOW_MS, 5_000)
  const started = outage.isAtStart ? undefined : await startEnforced(world)
  await outage.begin(world.redis)
  let during: During
  try {
    during = await askDuring(started ?? (await start(world)))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { isGood: false, seen: "the app did not start", figures: { reason } }
  } finally {
    await outage.end(world.redis)
  }
  return report(world, during, await timeToRecover(world, during.site))
}

async function askDuring(site: Site): Promise<During> {
  const first = await askEach(site, 1)
  if (first.some(({ status }) => status === undefined)) return { site, first, later: [], flood: [] }
  const later = await askEach(site, 2)
  return { site, first, later, flood: await askAtOnce(site, { from: "203.0.113.1" }, FLOOD) }
}

function report(
  { patienceMs, promptMs }: World,
  { first, later, flood }: During,
  recoveredMs: number | undefined,
): Finding {
  const answers = [...first, ...later, ...flood]
  const isAnswered = answers.every(({ status }) => status !== undefined && status < 500)
  const seen = [`first ${tell(first, patienceMs)}`]
  if (later.length > 0) seen.push(`then ${tell(later, patienceMs)}`, floodTold(flood))
  seen.push(recoveredMs === undefined ? "does not recover" : `recovers in ${seconds(recoveredMs)}`)
  return {
    isGood: isAnswered && worstMs(answers) <= promptMs && recoveredMs !== undefined,
    seen: seen.join("; "),
    figures: {
      first: figuresOf(first),
      later: figuresOf(later),
      flood: { asked: flood.length, admitted: countAdmitted(flood) },
      recoveredMs: recoveredMs ?? null,
    },
  }
}

function start(world: World): Promise<Site> {
  const limits = [{ limit: LIMIT, windowMs: WINDOW_MS }]
  return world.start({ limits, storeTimeoutMs: STORE_TIMEOUT_MS })
}

/** Starts an app and checks that it enforces its limit. If it did not, the outage would change nothing. */
async function startEnforced(world: World): Promise<Site> {
  const site = await start(world)
  let admitted = 0
  // Try again, because the first requests of an app are slow and may be decided without Redis.
  for (let n = 1; n <= MOST_TRIES; n++) {
    admitted = countAdmitted(await askAtOnce(site, { from: `192.0.2.${n}` }, LIMIT + 3))
    if (admitted === LIMIT) return site
  }
  throw new Error(`${admitted} of ${LIMIT} were admitted before Redis had gone`)
}

async function askEach(site: Site, round: number): Promise<Answer[]> {
  return Promise.all(
    Array.from({ length: CLIENTS }, (_, i) => site.ask({ from: `198.51.100.${10 * round + i}` })),
  )
}

/**
 * Returns the milliseconds until Redis counts a new client again and the app enforces that client's limit. Returns
 * undefined if that does not happen.
 */
async function timeToRecover(world: World, site: Site): Promise<number | undefined> {
  const startMs = performance.now()
  for (let n = 1; performance.now() - startMs < RECOVERS_WITHIN_MS; n++) {
    const tookMs = performance.now() - startMs
    const from = `203.0.113.${100 + n}`
    const answers = await askAtOnce(site, { from }, LIMIT + 3)
    const refused = answers.filter(isRefused).length
    if (countAdmitted(answers) === LIMIT && refused === 3 && (await isCounted(world.redis, from)))
      return tookMs
    await setTimeout(250)
  }
  return undefined
}

/** Whether Redis has a key for a client. The keys of all contenders contain the client's address. */
async function isCounted(redis: RedisServer, address: string): Promise<boolean> {
  const keys = await redis.command("KEYS", `*${address}*`)
  return Array.isArray(keys) && keys.length > 0
}

function tell(answers: readonly Answer[], patienceMs: number): string {
  if (answers.every(({ status }) => status === undefined)) return `no response in ${seconds(patienceMs)}`
  const statuses = [...new Set(answers.map(({ status }) => status ?? "none"))].sort().join("/")
  return `${statuses} in ${seconds(worstMs(answers))}`
}

function floodTold(flood: readonly Answer[]): string {
  const admitted = countAdmitted(flood)
  return admitted === flood.length ? "unlimited" : `${admitted} of ${flood.length} of one client admitted`
}

function figuresOf(answers: readonly Answer[]): object {
  return { worstMs: Math.round(worstMs(answers)), statuses: answers.map(({ status }) => status ?? null) }
}

/** Returns the longest response time, or 0 without responses. */
function worstMs(answers: readonly Answer[]): number {
  return Math.max(0, ...answers.map(({ sentMs, answeredMs }) => answeredMs - sentMs))
}

function seconds(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}
