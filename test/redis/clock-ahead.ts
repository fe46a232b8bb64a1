// Import this module first. The module sets the wall clock of this process ahead for all modules that are loaded later.
const aheadMs = Number(process.env.CLOCK_AHEAD_MS ?? 0)

if (aheadMs !== 0) {
  const realNow = Date.now
  Date.now = () => realNow() + aheadMs
  Object.defineProperty(performance, "timeOrigin", { value: performance.timeOrigin + aheadMs })
}
