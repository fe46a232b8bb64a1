import { PerformanceObserver } from "node:perf_hooks"
import { setTimeout } from "node:timers/promises"

/** Spans shorter than this are not recorded, because the longest span is never that short. */
const SHORTEST_KEPT_MS = 0.02

interface Span {
  readonly startMs: number
  readonly endMs: number
  /** CPU time of the process during the span. */
  readonly cpuMs: number
}

/** A watch that measures the longest time for which a single operation of a data structure blocks the event loop. */
export interface HoldWatch {
  measure(act: () => void): void
  /** Returns the longest hold since the last call, in milliseconds, without garbage collection and preemption. */
  longest(): Promise<number>
}

/**
 * Creates a watch. A hold is the time of one operation, without preemption and without garbage collections. To
 * exclude preemption, a hold is at most the CPU time that the process used. Garbage collections are noise here, and
 * take longer in a contender with more objects.
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
      // Node reports garbage collections in a later turn of the event loop.
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
