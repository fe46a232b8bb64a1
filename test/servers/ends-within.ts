/**
 * Additional time before work counts as late. No work is that late compared with a timer that was set at the same
 * time.
 */
const SLACK_MS = 10

/**
 * Resolves to true if the work, which has already started, ends within `ms`. The time is measured by a timer that
 * is set now. A stall of this process therefore delays both the timer and the work, and after the stall the work runs
 * first.
 */
export function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const lateAtMs = performance.now() + ms + SLACK_MS
  return new Promise((resolve) => {
    let control: NodeJS.Timeout | undefined
    const watch = (): void => {
      const leftMs = lateAtMs - performance.now()
      // A timer counts from the start of the turn of the event loop in which it was set, so it may fire early.
      control = leftMs > 0 ? setTimeout(watch, Math.ceil(leftMs)) : setTimeout(() => setImmediate(tell), 0)
    }
    const tell = (): void => resolve(false)
    const end = (): void => {
      clearTimeout(control)
      resolve(true)
    }
    watch()
    work.then(end, end)
  })
}
