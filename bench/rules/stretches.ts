import { PerformanceObserver } from "node:perf_hooks"
import { setTimeout } from "node:timers/promises"

/** Spans shorter than this are not recorded, because the longest span is never that short. */
const SHORTEST_KEPT_MS = 0.5

interface Span {
  readonly startMs: number
  readonly endMs: number
}

/** The duration of a piece of work, and the longest time for which it blocked the event loop, in milliseconds. */
export interface Stretches {
  readonly tookMs: number
  readonly cpuMs: number
  /** The longest stretch by the clock, which is the delay of a request. */
  readonly wallMs: number
  /** The longest stretch without preemption and garbage collections. */
  readonly workMs: number
}

/**
 * Runs the work next to a chain of setImmediate callbacks. One callback runs in each turn of the event loop. A
 * stretch is the time between two callbacks. CPU time covers the whole process, so run it with --single-threaded-gc.
 */
export async function longestStretches(work: () => Promise<unknown>): Promise<Stretches> {
  const spans: (Span & { readonly cpuMs: number })[] = []
  const collections: Span[] = []
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries())
      collections.push({ startMs: startTime, endMs: startTime + duration })
  })
  observer.observe({ entryTypes: ["gc"] })
  let isRunning = true
  const beganAtMs = performance.now()
  const cpuBefore = process.cpuUsage()
  let startMs = performance.now()
  let cpu = process.cpuUsage()
  const turn = (): void => {
    const endMs = performance.now()
    if (endMs - startMs >= SHORTEST_KEPT_MS) {
      const { user, system } = process.cpuUsage(cpu)
      spans.push({ startMs, endMs, cpuMs: (user + system) / 1e3 })
    }
    startMs = endMs
    cpu = process.cpuUsage()
    if (isRunning) setImmediate(turn)
  }
  setImmediate(turn)
  try {
    await work()
  } finally {
    isRunning = false
  }
  const tookMs = performance.now() - beganAtMs
  const used = process.cpuUsage(cpuBefore)
  // Node reports garbage collections in a later turn of the event loop.
  await setTimeout(10)
  observer.disconnect()
  const workOf = (span: (typeof spans)[number]): number => {
    const collected = collections.reduce((sum, gc) => sum + overlapMs(span, gc), 0)
    return Math.min(span.endMs - span.startMs - collected, span.cpuMs)
  }
  return {
    tookMs,
    cpuMs: (used.user + used.system) / 1e3,
    wallMs: Math.max(0, ...spans.map((span) => span.endMs - span.startMs)),
    workMs: Math.max(0, ...spans.map(workOf)),
  }
}

function overlapMs(one: Span, other: Span): number {
  return Math.max(0, Math.min(one.endMs, other.endMs) - Math.max(one.startMs, other.startMs))
}
