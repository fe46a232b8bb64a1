import { PerformanceObserver } from "node:perf_hooks"
import { setTimeout } from "node:timers/promises"

/** Shorter ones are not kept: nobody looks for the longest among them. */
const SHORTEST_KEPT_MS = 0.5

interface Span {
  readonly startMs: number
  readonly endMs: number
}

/** What a piece of work took, and the longest times for which it has kept the event loop from turning: milliseconds. */
export interface Stretches {
  readonly tookMs: number
  readonly cpuMs: number
  /** As a request would have felt it. */
  readonly wallMs: number
  /** Without what other programs had of the core meanwhile, and without garbage collections. */
  readonly workMs: number
}

/**
 * Runs the work beside a chain of setImmediate, which has a turn in each turn of the event loop: the time between two
 * of its turns is a stretch. CPU time is that of the whole process, so run it with --single-threaded-gc.
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
  // Collections are told in a later turn of the event loop.
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
