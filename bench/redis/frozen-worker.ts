import { setImmediate } from "node:timers/promises"
import { createLimiter } from "@sluice/core"
import { redisStore } from "@sluice/redis"
import { freshAddress } from "../clients/addresses.ts"
import { uniformSequence } from "../clients/sequence.ts"
import { answerTasks } from "../contender-process.ts"
import { quantile } from "../load/drive.ts"
import { connect } from "./connect.ts"

export interface FrozenTask {
  /** Port of the Redis to use. If undefined, the memory store is used. */
  readonly port: number | undefined
  readonly forMs: number
  /**
   * Milliseconds from the start until the circuit breaker is open. Decisions that begin later are counted
   * separately.
   */
  readonly openAfterMs: number
}

export interface FrozenSample {
  readonly decisions: number
  readonly degraded: number
  /** Duration of the longest decision. */
  readonly worstMs: number
  readonly afterOpen: number
  readonly degradedAfterOpen: number
  readonly p50AfterOpenMs: number
  readonly p999AfterOpenMs: number
}

const IN_FLIGHT = 64
const CLIENTS = 10_000
const MOST_TIMED = 2 ** 21

answerTasks<FrozenTask>(async ({ port, forMs, openAfterMs }): Promise<FrozenSample> => {
  const client = port === undefined ? undefined : await connect(port)
  const limiter = createLimiter({
    limit: 1_000_000,
    window: "1h",
    field: "ip",
    logger: { warn() {}, error() {} },
    ...(client === undefined ? {} : { store: redisStore({ client }) }),
  })
  const sequence = uniformSequence(CLIENTS, 2 ** 16, 1)
  const latencies = new Float64Array(MOST_TIMED)
  let decisions = 0
  let degraded = 0
  let worstMs = 0
  let afterOpen = 0
  let degradedAfterOpen = 0
  const startedAt = performance.now()
  const runLane = async () => {
    for (;;) {
      const key = freshAddress(sequence[decisions++ % sequence.length] as number)
      const sentAt = performance.now()
      if (sentAt - startedAt > forMs) return
      const decision = await limiter.decide({ remoteAddress: key })
      const tookMs = performance.now() - sentAt
      worstMs = Math.max(worstMs, tookMs)
      if (decision.degraded) degraded++
      if (sentAt - startedAt >= openAfterMs) {
        latencies[afterOpen++ % MOST_TIMED] = tookMs
        if (decision.degraded) degradedAfterOpen++
      }
      // Wait for a turn of the event loop, as requests from the network do.
      await setImmediate()
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, runLane))
  client?.disconnect()
  const sorted = latencies.subarray(0, Math.min(afterOpen, MOST_TIMED)).sort()
  return {
    decisions,
    degraded,
    worstMs,
    afterOpen,
    degradedAfterOpen,
    p50AfterOpenMs: quantile(sorted, 0.5),
    p999AfterOpenMs: quantile(sorted, 0.999),
  }
})
