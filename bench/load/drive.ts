import { freshAddress } from "../clients/addresses.ts"
import type { Contender, Outcome } from "./contender.ts"

export interface Driven {
  readonly decisions: number
  readonly refused: number
  readonly failed: number
  /** The error of the first failed decision. Undefined if the failed decision was made without Redis. */
  readonly firstError: unknown
  readonly wallMs: number
  /** CPU time of the whole process, including the load generator and garbage collection. */
  readonly cpuUs: number
  /**
   * The sorted latencies of every 16th decision in milliseconds. If there are too many latencies, only the latest are
   * included.
   */
  readonly latenciesMs: Float64Array
}

/**
 * Number of decisions after which the next request waits for a turn of the event loop, as requests from the network do.
 */
const DECISIONS_A_TURN = 256
const TIMED_EVERY = 16
const MOST_TIMED = 2 ** 16

/**
 * Keeps `inFlight` requests in flight: each decision starts the next request. Goes once through the sequence, or
 * repeats it for `forMs`.
 */
export async function drive(
  contender: Contender,
  sequence: Uint32Array,
  inFlight: number,
  forMs?: number,
): Promise<Driven> {
  const latencies = new Float64Array(MOST_TIMED)
  // These counts are separate variables, because a table by outcome would need a string lookup for each decision.
  let granted = 0
  let refused = 0
  let failed = 0
  let begun = 0
  let sinceTurn = 0
  let timed = 0
  let firstError: unknown
  let isOver = false
  const most = forMs === undefined ? sequence.length : Number.POSITIVE_INFINITY

  const runLane = (): Promise<void> =>
    new Promise((resolve) => {
      let sentAt = 0
      const settle = (outcome: Outcome) => {
        if (outcome === "granted") granted++
        else if (outcome === "refused") refused++
        else failed++
        if (sentAt === 0) return
        latencies[timed++ % MOST_TIMED] = performance.now() - sentAt
        sentAt = 0
      }
      const onAnswer = (decided: unknown) => {
        settle(contender.judge(decided))
        next()
      }
      const onRejection = (reason: unknown) => {
        const outcome = contender.judgeError(reason)
        if (outcome === "failed") firstError ??= reason
        settle(outcome)
      }
      const onError = (reason: unknown) => {
        onRejection(reason)
        next()
      }
      const next = () => {
        while (!isOver && begun < most) {
          if (sinceTurn++ >= DECISIONS_A_TURN) {
            setImmediate(() => {
              sinceTurn = 0
              next()
            })
            return
          }
          const nth = begun++
          const key = freshAddress(sequence[nth % sequence.length] as number)
          if (nth % TIMED_EVERY === 0) sentAt = performance.now()
          try {
            const decided = contender.count(key)
            if (isPromise(decided)) {
              decided.then(onAnswer, onError)
              return
            }
            settle(contender.judge(decided))
          } catch (error) {
            onRejection(error)
          }
        }
        resolve()
      }
      next()
    })

  const before = process.cpuUsage()
  const startedAt = performance.now()
  if (forMs !== undefined) setTimeout(() => (isOver = true), forMs)
  await Promise.all(Array.from({ length: inFlight }, runLane))
  const wallMs = performance.now() - startedAt
  const { user, system } = process.cpuUsage(before)
  return {
    decisions: granted + refused + failed,
    refused,
    failed,
    firstError,
    wallMs,
    cpuUs: user + system,
    latenciesMs: latencies.subarray(0, Math.min(timed, MOST_TIMED)).sort(),
  }
}

/** Returns the CPU microseconds for creating one key. The CPU time that `drive` returns includes these microseconds. */
export function costOfKeys(sequence: Uint32Array): number {
  const before = process.cpuUsage()
  let characters = 0
  for (const index of sequence) characters += freshAddress(index).length
  const { user, system } = process.cpuUsage(before)
  if (characters === 0) throw new Error("No key has any text")
  return (user + system) / sequence.length
}

/** Returns the quantile (`part` from 0 to 1) of sorted values, or NaN without values. */
export function quantile(sorted: Float64Array, part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof Promise
}
