import { setTimer } from "../outside-requests.ts"

/** Whether the work ends within so long; yields false as soon as that is over. Rejects when the work does. */
export async function endsWithin(ms: number, work: Promise<void>): Promise<boolean> {
  let giveUp = (): void => undefined
  const lateness = new Promise<false>((resolve) => {
    giveUp = () => resolve(false)
  })
  return Promise.race([timed(ms, work, giveUp), lateness])
}

/** Whether the work ended within so long; yields nothing before it has ended. Rejects when the work does. */
export async function endedWithin(ms: number, work: Promise<void>): Promise<boolean> {
  return timed(ms, work, () => undefined)
}

/** A stall of our own event loop does not count: what has arrived is read first. */
async function timed(ms: number, work: Promise<void>, onLate: () => void): Promise<boolean> {
  let isLate = false
  const timer = setTimer(() => {
    setImmediate(() => {
      isLate = true
      onLate()
    })
  }, ms)
  // Whoever waits for an answer watches the time, too.
  timer.unref()
  try {
    await work
    return !isLate
  } finally {
    clearTimeout(timer)
  }
}
