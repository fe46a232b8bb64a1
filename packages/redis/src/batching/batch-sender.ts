import { StoreUnavailableError } from "@sluice/core"
import { outsideRequests } from "@sluice/core/kit"
import { type StoreResult, setTimer, soon } from "@sluice/core/stores"
import { noCounter, shownKey } from "../failure.ts"
import type { ReplyArrival } from "../node/arrivals.ts"
import { LOOK_AGAIN_MS, type Node } from "../node/node.ts"
import type { RedisRequest } from "../scripts/script-input.ts"
import { TakeCall } from "../scripts/take-call.ts"
import { BatchPolicy } from "./batch-policy.ts"
import { expire, type PendingTake, settle } from "./pending.ts"
import { TakeQueue } from "./queue.ts"
import { Watchdog } from "./watchdog.ts"

/** Delay before the next call to a server that has rejected a call without running it. */
const REST_MS = 25

/** A listener for the outcomes of a batch sender's requests. */
export interface BatchListener {
  /** Called when Redis has decided a request, whether or not its caller still waits. */
  answered(asked: RedisRequest, answer: StoreResult, arrival: ReplyArrival): void
  /** Called when it is unknown whether Redis has counted a request. */
  lost(asked: RedisRequest): void
  /** Called when Redis has granted requests whose callers no longer wait. Their units are counted but not used. */
  grantedLate(late: readonly Late[]): void
}

export interface Late {
  readonly asked: RedisRequest
  readonly answer: StoreResult
}

/** A call that has been sent. */
interface Flight {
  readonly batch: readonly PendingTake[]
  readonly node: Node
}

/**
 * A sender of requests to one server, or to one slot of a cluster. Requests that arrive while calls are in flight
 * share the next call, in order. Every request is resolved or rejected by its deadline, and Redis counts no request
 * after its deadline.
 */
export class BatchSender {
  readonly #nodeOf: () => Node
  readonly #listener: BatchListener
  readonly #policy: BatchPolicy
  readonly #watchdog = new Watchdog(() => this.#expire())
  /**
   * At most four calls, so an array is fast enough. A Set that constantly changes sometimes allocates a new table, to
   * which V8 links the old table. Once the garbage collector has promoted a table to the old generation, all later
   * calls stay in memory until a full collection. Each minor collection copies these calls.
   */
  readonly #flights: Flight[] = []
  readonly #queue = new TakeQueue()
  #isLearning = false
  /**
   * True until a server has responded for the first time. The first requests of a process take 10 ms of CPU time,
   * because the code is not compiled yet. The server does not cause this delay, so the first reply restarts the
   * timeouts of waiting requests.
   */
  #isCold = true
  /**
   * True after the server rejected a call without running it, as a replica does. Sending resumes after REST_MS.
   */
  #isResting = false
  /**
   * The replica from which the client must disconnect once all calls to the replica have ended. If the client
   * disconnected earlier, it would be unknown whether the remaining calls were counted.
   */
  #leaving: Node | undefined
  #later: NodeJS.Timeout | undefined
  #closedBy: Error | undefined

  /** `nodeOf` returns the server that is currently responsible. */
  constructor(nodeOf: () => Node, listener: BatchListener, policy = new BatchPolicy()) {
    this.#nodeOf = nodeOf
    this.#listener = listener
    this.#policy = policy
  }

  /**
   * Takes the units of one request, whose caller waits for `withinMs`. This timeout starts when the current callback
   * ends, because nothing can be sent earlier. Throws or rejects with StoreUnavailableError.
   */
  take(asked: RedisRequest, withinMs: number): Promise<StoreResult> {
    if (this.#closedBy !== undefined) throw this.#closedBy
    const node = this.#nodeOf()
    // Reject instead of throwing, because throwing would take as long as deciding without the server.
    if (node.breaker.isOpen) return Promise.reject(node.unavailable)
    node.waitedFor(withinMs)
    return new Promise((resolve, reject) => {
      const waiting = { asked, withinMs, deadlineMs: 0, resolve, reject, isRejected: false, wasLate: false }
      // Send only after the current callback, so that its other requests can join the call.
      if (this.#queue.add(waiting)) soon(this.#pump)
    })
  }

  /** Rejects all waiting requests. From then on, `take` throws the error. */
  close(error: Error): void {
    this.#closedBy = error
    this.#queue.begin()
    this.#watchdog.stop()
    clearTimeout(this.#later)
    for (const { batch } of this.#flights) for (const waiting of batch) settle(waiting, error)
    this.#queue.reject(error)
  }

  readonly #pump = (): void => {
    this.#watchdog.watch(this.#queue.begin())
    if (this.#canSend()) outsideRequests(this.#sendAll)
  }

  #canSend(): boolean {
    const waiting = this.#queue.waiting.length
    return waiting > 0 && this.#policy.hasRoom(this.#flights.length, waiting)
  }

  /** Sends calls as long as requests wait and another call is allowed. */
  readonly #sendAll = (): void => {
    while (this.#canSend()) {
      const node = this.#nodeOf()
      if (node.breaker.isOpen) {
        this.#queue.reject(node.unavailable)
      } else if (this.#leaving !== undefined || this.#isResting || !node.isReady()) {
        // Wait, because the client would queue the call and could send it after the callers have stopped waiting.
        this.#pumpLater()
        return
      } else if (node.knowsTime) {
        this.#sendBatch(node)
      } else {
        this.#learnTime(node)
        return
      }
    }
  }

  /**
   * Tries to send again after a delay. The sender must poll, because clients emit no event when a slot moves or a
   * replica becomes the primary.
   */
  #pumpLater(): void {
    if (this.#later !== undefined) return
    this.#later = setTimer(
      () => {
        this.#later = undefined
        this.#isResting = false
        this.#pump()
      },
      this.#isResting ? REST_MS : LOOK_AGAIN_MS,
    )
    this.#later.unref()
  }

  /** Requests the server's time, because every call contains its deadline in that time. */
  #learnTime(node: Node): void {
    if (this.#isLearning) return
    this.#isLearning = true
    node.learnTime().then(
      () => {
        this.#isLearning = false
        if (this.#isCold && node.knowsTime) {
          this.#isCold = false
          this.#watchdog.watch(this.#queue.restart())
        }
        this.#pump()
      },
      (error: unknown) => {
        this.#isLearning = false
        if (node.isReplica(error)) this.#leave(node)
        else this.#fail(this.#queue.clear(), error, node)
        this.#next()
      },
    )
  }

  #sendBatch(node: Node): void {
    const call = new TakeCall()
    const most = this.#policy.mostRequests(this.#flights.length, this.#queue.waiting.length)
    const { batch, deadlineMs } = this.#queue.moveTo(call, most, node)
    if (batch.length === 0) return
    const flight: Flight = { batch, node }
    this.#flights.push(flight)
    this.#policy.sent()
    node.take(call, deadlineMs).then(
      ({ answers, arrival }) => {
        // A reply that is too late for all callers does not show that the server responds in time.
        if (!this.#land(flight)) node.breaker.succeeded()
        if (answers === undefined) this.#again(batch, true)
        else this.#answer(batch, answers, arrival)
        this.#next()
      },
      (error: unknown) => {
        const wasOver = this.#land(flight)
        if (node.hasNotRun(error)) {
          this.#isResting = true
          if (node.isReplica(error)) this.#leave(node)
          this.#again(batch, false)
        } else {
          for (const { asked } of batch) this.#listener.lost(asked)
          if (!wasOver) this.#fail(batch, error, node)
        }
        this.#next()
      },
    )
  }

  /** Sends the next calls after a call has ended or timed out. */
  #next(): void {
    if (this.#leaving !== undefined && this.#flights.length === 0) {
      // After closing, do not use the client, because the app may be about to close it.
      if (this.#closedBy === undefined) this.#leaving.reconnect()
      this.#leaving = undefined
    }
    if (this.#queue.waiting.length > 0) {
      this.#pump()
    } else if (this.#flights.length === 0) {
      this.#watchdog.rest()
      this.#policy.paused()
    }
  }

  #answer(
    batch: readonly PendingTake[],
    answers: readonly (StoreResult | undefined)[],
    arrival: ReplyArrival,
  ): void {
    const late: Late[] = []
    for (let i = 0; i < batch.length; i++) {
      const waiting = batch[i] as PendingTake
      const { asked } = waiting
      const answer = answers[i]
      if (answer === undefined) {
        this.#listener.lost(asked)
        const others = asked.keys.length > 1 ? ", or another key of the request," : ""
        settle(waiting, noCounter(`${shownKey(asked.keys[0] as string)}${others}`))
        continue
      }
      this.#listener.answered(asked, answer, arrival)
      if (!waiting.isRejected) waiting.resolve(answer)
      else if (answer.granted) late.push({ asked, answer })
    }
    if (late.length > 0) this.#listener.grantedLate(late)
  }

  #leave(node: Node): void {
    node.becameReplica()
    this.#isResting = true
    this.#leaving = node
  }

  /**
   * Puts requests that were certainly not counted back into the queue. Rejects a request that reached Redis too late
   * for the second time.
   */
  #again(batch: readonly PendingTake[], wasLate: boolean): void {
    const returned: PendingTake[] = []
    for (const waiting of batch) {
      if (waiting.isRejected) continue
      if (wasLate && waiting.wasLate) {
        settle(waiting, new StoreUnavailableError(TOO_LATE, { kind: "timeout" }))
      } else {
        // The queue rejects the request if its deadline has passed.
        if (wasLate) waiting.wasLate = true
        returned.push(waiting)
        this.#watchdog.watch(waiting.deadlineMs)
      }
    }
    this.#queue.putBack(returned)
  }

  #fail(batch: readonly PendingTake[], error: unknown, node: Node): void {
    const failure = node.failed(error)
    for (const waiting of batch) settle(waiting, failure)
  }

  /** Removes a call from the calls in flight. Returns true if the call had timed out. */
  #land(flight: Flight): boolean {
    const at = this.#flights.indexOf(flight)
    if (at !== -1) this.#flights.splice(at, 1)
    return at === -1
  }

  #expire(): void {
    const node = this.#nodeOf()
    const nowMs = performance.now()
    for (const flight of [...this.#flights]) {
      if (expire(flight.batch, nowMs, flight.node).length > 0) continue
      // No caller waits for this call any longer, so it must not delay other requests.
      this.#land(flight)
      flight.node.failed(flight.node.silence())
    }
    if (this.#queue.expire(nowMs, node)) node.failed(node.silence())
    if (node.breaker.isOpen) this.#queue.reject(node.unavailable)
    for (const { batch } of this.#flights) this.#watchFor(batch)
    this.#watchFor(this.#queue.waiting)
    this.#next()
  }

  #watchFor(batch: readonly PendingTake[]): void {
    for (const { deadlineMs, isRejected } of batch) if (!isRejected) this.#watchdog.watch(deadlineMs)
  }
}

const TOO_LATE = "The request reached Redis after its deadline, so it was not counted."
