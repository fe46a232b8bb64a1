import { createLimiter } from "@sluice/core"
import Bottleneck from "bottleneck"
import pLimit from "p-limit"
import PQueue from "p-queue"

/** Runs work when a limit of concurrency permits it. */
export type Run = (work: () => Promise<number>) => Promise<number>

/** Each contender with at most `concurrent` jobs at a time, counted in memory. */
export const CONTENDERS: Readonly<Record<string, (concurrent: number) => Run>> = {
  nobody: () => (work) => work(),
  sluice(concurrent) {
    const limiter = createLimiter({ rules: [{ field: "service", concurrent }] })
    return (work) => limiter.run({}, work, { maxWaiting: Number.POSITIVE_INFINITY })
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
