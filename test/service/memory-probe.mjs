// Loaded into the program by --import. On SIGUSR2 it prints what the process holds after a collection, and the most that it ever held.
import process from "node:process"

process.on("SIGUSR2", () => {
  globalThis.gc()
  setImmediate(() => {
    globalThis.gc()
    const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage()
    const peakRss = process.resourceUsage().maxRSS * 1024
    console.log(
      JSON.stringify({ msg: "memory", level: "info", heapUsed, external, arrayBuffers, rss, peakRss }),
    )
  })
})
