import { setTimeout as sleep } from "node:timers/promises"
import { ask } from "./ask.ts"
import type { ExampleServer } from "./servers.ts"
import { newTally, record, retryAfterSeconds, type Tally } from "./tally.ts"

/** How long the clients that ask one by one take, in milliseconds. */
const SPREAD_MS = 2_500
/** They take longer on a machine that is busy. */
const ROOM_MS = 2 * SPREAD_MS + 1_000
const READER_SENDS = 40
const SCRAPER_SENDS = 130
const BURST = 8

/** Clients at work: their tallies, which change while they are, and when they have done. */
export interface Traffic {
  readonly tallies: readonly Tally[]
  readonly done: Promise<void>
}

/** Sets three clients on each server: one within the limit, one beyond it, and one that waits when it is told to. */
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
 * Resolves when no window of a minute ends while the clients are at work: one that did would hand out new units in the
 * middle, and the counts would be right but not round.
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

/** One request after the other, evenly spread. A client that has been told of units left must get them. */
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

/** Several requests at once at the start of a second, then one more after exactly the time that was told. */
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
