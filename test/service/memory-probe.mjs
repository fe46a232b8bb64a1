// Loaded into the program by --import. On SIGUSR2 it prints what the process holds after a collection, and the most that it held since the
// last signal.
import { readFileSync, writeFileSync } from "node:fs"
import process from "node:process"

/** The most resident memory since it was last reset, in bytes. Only Linux can reset it (proc(5), clear_refs). */
function peak() {
  if (process.platform !== "linux") return process.resourceUsage().maxRSS * 1024
  const [, kilobytes] = readFileSync("/proc/self/status", "utf8").match(/^VmHWM:\s+(\d+) kB$/m)
  writeFileSync("/proc/self/clear_refs", "5")
  return kilobytes * 1024
}

process.on("SIGUSR2", () => {
  globalThis.gc()
  setImmediate(() => {
    globalThis.gc()
    const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage()
    console.log(
      JSON.stringify({
        msg: "memory",
        level: "info",
        heapUsed,
        external,
        arrayBuffers,
        rss,
        peakRss: peak(),
      }),
    )
  })
})
