import { setTimeout as sleep } from "node:timers/promises"
import { ask } from "./ask.ts"
import type { ExampleServer } from "./servers.ts"
import { newTally, record, retryAfterSeconds, type Tally } from "./tally.ts"

/** Milliseconds over which the steady clients spread their requests. */
const SPREAD_MS = 2_500
/** Milliseconds that must remain in the minute, because the clients take longer on a busy machine. */
const ROOM_MS = 2 * SPREAD_MS + 1_000
const READER_SENDS = 40
const SCRAPER_SENDS = 130
const BURST = 8

/** Running clients. Their tallies change during the run, and the promise resolves when the clients have finished. */
export interface Traffic {
  readonly tallies: readonly Tally[]
  readonly done: Promise<void>
}

/**
 * Starts three clients for each server. The first client stays within the limit, the second exceeds it, and the third
 * waits for Retry-After.
 */
export function startTraffic(servers: readonly ExampleServer[]): Traffic {
  const clients = servers.flatMap(({ framework, url }) => [
    {
      tally: newTally(framework, "203.0.113.10", "ip-1m"),
      run: (tally: Tally) => steady(tally, url, READER_SENDS),
    },
    {
      tally: newTally(framework, "203.0.113.20", "ip-1m"),
      run: (tally: Tally) => steady(tally, url, SCRAPER_SENDS),
    },
    { tally: newTally(framework, "203.0.113.30", "search"), run: (tally: Tally) => patient(tally, url) },
  ])
  return {
    tallies: clients.map(({ tally }) => tally),
    done: Promise.all(clients.map(({ tally, run }) => run(tally))).then(() => undefined),
  }
}

/**
 * Resolves when the current minute has enough time left for the clients. If the minute ended during the run, units
 * would return, and the counts would be correct but not round.
 */
export async function untilMinuteHasRoom(nowMs: number): Promise<void> {
  const leftMs = 60_000 - (nowMs % 60_000)
  if (leftMs < ROOM_MS) await sleep(leftMs + 50)
}

async function sendOne(tally: Tally, url: string): Promise<number> {
  tally.sent++
  if (tally.firstSentMs === 0) tally.firstSentMs = Date.now()
  const answer = await ask(url, tally.client)
  record(tally, answer, Date.now())
  return answer.status === 200 ? 0 : retryAfterSeconds(answer)
}

/**
 * Sends one request after another, evenly spread. Records a problem if a request is refused although units were left.
 */
async function steady(tally: Tally, url: string, sends: number): Promise<void> {
  const start = performance.now()
  for (let sent = 0; sent < sends; sent++) {
    await sleepUntil(start + (sent * SPREAD_MS) / sends)
    const { owed, refused } = tally
    await sendOne(tally, url)
    if (owed > 0 && tally.refused > refused) {
      tally.broken.push(`it was refused after it had been told that ${owed} were left`)
    }
  }
}

/** Sends several requests at the start of a second, and one more exactly after the longest Retry-After. */
async function patient(tally: Tally, url: string): Promise<void> {
  await sleep(1_000 - (Date.now() % 1_000) + 20)
  const search = `${url}/search?q=sluice`
  const told = await Promise.all(Array.from({ length: BURST }, () => sendOne(tally, search)))
  const seconds = Math.max(...told)
  const waited: NonNullable<Tally["waited"]> = { seconds, isAdmitted: undefined }
  tally.waited = waited
  await sleepUntil(performance.now() + seconds * 1000)

  const answer = await ask(search, tally.client)
  waited.isAdmitted = answer.status === 200
}

async function sleepUntil(instant: number): Promise<void> {
  // A timer may fire a fraction of a millisecond early.
  for (let left = instant - performance.now(); left > 0; left = instant - performance.now()) await sleep(left)
}
