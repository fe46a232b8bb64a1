import { PerformanceObserver } from "node:perf_hooks"
import { setTimeout } from "node:timers/promises"

/** Shorter ones are not kept: nobody looks for the longest among them. */
const SHORTEST_KEPT_MS = 0.02

interface Span {
  readonly startMs: number
  readonly endMs: number
  /** What the process computed meanwhile. */
  readonly cpuMs: number
}

/** Watches single acts of a data structure for the longest time that one keeps the event loop from turning. */
export interface HoldWatch {
  measure(act: () => void): void
  /** The longest hold since the last call, in milliseconds, without garbage collection and without preemption. */
  longest(): Promise<number>
}

/**
 * A hold is the time of one act, less what other programs had of the core meanwhile (it is at most the CPU time that
 * the process used), less the garbage collections that fell into it: these are noise here, and they are longer for
 * who keeps more objects.
 */
export function watchHolds(): HoldWatch {
  let spans: Span[] = []
  let collections: Omit<Span, "cpuMs">[] = []
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries())
      collections.push({ startMs: startTime, endMs: startTime + duration })
  })
  observer.observe({ entryTypes: ["gc"] })

  return {
    measure(act) {
      const before = process.cpuUsage()
      const startMs = performance.now()
      act()
      const endMs = performance.now()
      if (endMs - startMs < SHORTEST_KEPT_MS) return
      const { user, system } = process.cpuUsage(before)
      spans.push({ startMs, endMs, cpuMs: (user + system) / 1e3 })
    },
    async longest() {
      // Collections are told in a later turn of the event loop.
      await setTimeout(10)
      const holds = spans.map((span) => {
        const collected = collections.reduce((sum, gc) => sum + overlapMs(span, gc), 0)
        return Math.min(span.endMs - span.startMs, span.cpuMs) - collected
      })
      spans = []
      collections = []
      return Math.max(0, ...holds)
    },
  }
}

function overlapMs(one: Omit<Span, "cpuMs">, other: Omit<Span, "cpuMs">): number {
  return Math.max(0, Math.min(one.endMs, other.endMs) - Math.max(one.startMs, other.startMs))
}
