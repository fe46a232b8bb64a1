// Imported before everything else: this process' wall clock is ahead by so much, for all that is loaded later.
const aheadMs = Number(process.env.CLOCK_AHEAD_MS ?? 0)

if (aheadMs !== 0) {
  const realNow = Date.now
  Date.now = () => realNow() + aheadMs
  Object.defineProperty(performance, "timeOrigin", { value: performance.timeOrigin + aheadMs })
}
