// Moves this process's wall clock ahead. Import this module first, because only modules that are loaded later see the
// new time.
const aheadMs = Number(process.env.CLOCK_AHEAD_MS ?? 0)

if (aheadMs !== 0) {
  const realNow = Date.now
  Date.now = () => realNow() + aheadMs
  Object.defineProperty(performance, "timeOrigin", { value: performance.timeOrigin + aheadMs })
}
