import { createLimiter } from "@sluice/core"
import Bottleneck from "bottleneck"
import pLimit from "p-limit"
import PQueue from "p-queue"

/** Runs work when a limit of concurrency permits it. */
export type Run = (work: () => Promise<number>) => Promise<number>

const RATE = { name: "rate", field: "service", limit: 1_000_000_000, window: "1 hour" } as const

/** Each contender with at most `concurrent` jobs at a time, counted in memory. */
export const CONTENDERS: Readonly<Record<string, (concurrent: number) => Run>> = {
  nobody: () => (work) => work(),
  sluice(concurrent) {
    const limiter = createLimiter({ rules: [{ field: "service", concurrent }] })
    return (work) => limiter.run({}, work, { maxWaiting: Number.POSITIVE_INFINITY })
  },
  "sluice, two rates"() {
    const limiter = createLimiter({ rules: [RATE, { ...RATE, name: "other" }] })
    return async (work) => {
      await limiter.decide({})
      return work()
    }
  },
  "sluice, a rate and a permit"() {
    const limiter = createLimiter({
      rules: [RATE, { name: "permits", field: "service", concurrent: 10_000 }],
    })
    return async (work) => {
      const decision = await limiter.decide({})
      const result = await work()
      await limiter.release(decision)
      return result
    }
  },
  "p-limit"(concurrent) {
    const limit = pLimit(concurrent)
    return (work) => limit(work)
  },
  "p-queue"(concurrency) {
    const queue = new PQueue({ concurrency })
    return (work) => queue.add(work)
  },
  Bottleneck(maxConcurrent) {
    const limiter = new Bottleneck({ maxConcurrent })
    return (work) => limiter.schedule(work)
  },
}
