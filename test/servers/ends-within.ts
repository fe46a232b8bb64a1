/** Lateness that nothing has, by a timer that was set with it. */
const SLACK_MS = 10

/**
 * Whether the work, which has begun, ends within so many milliseconds of this process: by a timer that is set now, so
 * that what stalls the process from here on delays both, and the work has the first turn afterwards.
 */
export function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const lateAtMs = performance.now() + ms + SLACK_MS
  return new Promise((resolve) => {
    let control: NodeJS.Timeout | undefined
    const watch = (): void => {
      const leftMs = lateAtMs - performance.now()
      // Timers count from the start of the turn of the event loop in which they are set, so they may be early.
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
