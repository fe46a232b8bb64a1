import { StoreUnavailableError } from "../../../ground/errors.ts"
import { outsideRequests, setTimer } from "../../../ground/time.ts"
import type { StoreResult } from "../../store.ts"
import { failureOf, NO_COUNTER, shownKey } from "../failure.ts"
import type { ReplyArrival } from "../node/arrivals.ts"
import { LOOK_AGAIN_MS, type Node } from "../node/node.ts"
import type { RedisRequest } from "../scripts/script-input.ts"
import { TakeCall } from "../scripts/take-call.ts"
import { BatchPolicy } from "./batch-policy.ts"
import { expire, type PendingTake, settle } from "./pending.ts"
import { TakeQueue } from "./queue.ts"
import { Watchdog } from "./watchdog.ts"

/** What follows it comes after the callback that runs now; queueMicrotask would make a resource of each. */
const SETTLED = Promise.resolve()

/** What a batch sender tells of answers. */
export interface BatchListener {
  /** Redis has decided a request, whether or not anybody still waits for it. */
  answered(asked: RedisRequest, answer: StoreResult, arrival: ReplyArrival): void
  /** Nobody knows whether Redis has counted a request. */
  lost(asked: RedisRequest): void
  /** Redis granted what nobody waited for any more: it was counted for nobody. */
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
  isOver: boolean
}

/**
 * The way to one server, or to one slot of a cluster: requests that come while calls are in flight travel together in
 * the next one, in order. Every request is answered or rejected by its deadline, and none is counted after it.
 */
export class BatchSender {
  readonly #nodeOf: () => Node
  readonly #listener: BatchListener
  readonly #policy: BatchPolicy
  readonly #watchdog = new Watchdog(() => this.#expire())
  /**
   * A list, since it holds four at the most. A Set that is added to and taken from for ever makes a new table now and
   * then, and V8 links the old one to it: when one of them has grown old, all calls since are kept until a full
   * collection, and each small one copies them.
   */
  #flights: readonly Flight[] = []
  readonly #queue = new TakeQueue()
  #isLearning = false
  /** Whether the server said that it is a replica: it is asked again in a moment, or when the client has reconnected. */
  #isResting = false
  /** The replica that is to be left when all calls to it have ended: what is cut off may have been counted or not. */
  #leaving: Node | undefined
  #later: NodeJS.Timeout | undefined
  #closedBy: Error | undefined

  /** `nodeOf` yields the server that is responsible now. */
  constructor(nodeOf: () => Node, listener: BatchListener, policy = new BatchPolicy()) {
    this.#nodeOf = nodeOf
    this.#listener = listener
    this.#policy = policy
  }

  /**
   * Asks for one request, of which somebody waits for the answer for so long. That time begins when the callback ends that runs
   * now, as nothing is sent before. Throws or rejects with StoreUnavailableError.
   */
  take(asked: RedisRequest, withinMs: number): Promise<readonly StoreResult[]> {
    if (this.#closedBy !== undefined) throw this.#closedBy
    const node = this.#nodeOf()
    if (node.breaker.isOpen) return node.refusal
    node.waitedFor(withinMs)
    return new Promise((resolve, reject) => {
      const waiting = { asked, withinMs, deadlineMs: 0, resolve, reject, isRejected: false, wasLate: false }
      // After the requests of the same callback have joined.
      if (this.#queue.add(waiting)) void SETTLED.then(this.#pump)
    })
  }

  /** The client has become ready: what waits for that is sent. */
  wake(): void {
    this.#isResting = false
    this.#pump()
  }

  /** Rejects whatever waits and whoever comes. */
  close(error: Error): void {
    this.#closedBy = error
    this.#queue.begin()
    this.#watchdog.stop()
    clearTimeout(this.#later)
    for (const { batch } of this.#flights) for (const waiting of batch) settle(waiting, error)
    this.#queue.reject(error)
  }

  readonly #pump = (): void => {
    const deadlineMs = this.#queue.begin()
    if (deadlineMs < Number.POSITIVE_INFINITY) this.#watchdog.watch(deadlineMs)
    if (this.#canSend()) outsideRequests(this.#sendAll)
  }

  #canSend(): boolean {
    const waiting = this.#queue.waiting.length
    return waiting > 0 && this.#policy.hasRoom(this.#flights.length, waiting)
  }

  /** Sends what can be sent. */
  readonly #sendAll = (): void => {
    while (this.#canSend()) {
      const node = this.#nodeOf()
      if (node.breaker.isOpen) {
        this.#queue.reject(node.unavailable)
      } else if (this.#leaving !== undefined || this.#isResting || !node.isReady()) {
        // What a client keeps in a queue of its own is sent when nobody waits any more.
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

  /** Clients say when they are ready, but not when another server has taken over a slot, or is no replica any more. */
  #pumpLater(): void {
    if (this.#later !== undefined) return
    this.#later = setTimer(() => {
      this.#later = undefined
      this.wake()
    }, LOOK_AGAIN_MS)
    this.#later.unref()
  }

  /** A call has to say until when it counts, in the server's time. */
  #learnTime(node: Node): void {
    if (this.#isLearning) return
    this.#isLearning = true
    node.learnTime().then(
      () => {
        this.#isLearning = false
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
    const flight: Flight = { batch, node, isOver: false }
    this.#flights = [...this.#flights, flight]
    this.#policy.sent()
    node.take(call, deadlineMs).then(
      ({ answers, arrival }) => {
        // An answer that comes too late for everybody tells of no server that could be waited for.
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

  /** What follows when a call has ended, or was given up. */
  #next(): void {
    if (this.#leaving !== undefined && this.#flights.length === 0) {
      // When nobody asks any more the client is left as it is: its app may be about to close it.
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
        settle(
          waiting,
          new StoreUnavailableError(
            `The Redis key ${shownKey(asked.keys[0] as string)}${asked.keys.length > 1 ? ", or another key of the request," : ""} ${NO_COUNTER}`,
            { kind: "invalid-answer" },
          ),
        )
        continue
      }
      this.#listener.answered(asked, answer, arrival)
      if (!waiting.isRejected) waiting.resolve([answer])
      else if (answer.granted) late.push({ asked, answer })
    }
    if (late.length > 0) this.#listener.grantedLate(late)
  }

  #leave(node: Node): void {
    node.becameReplica()
    this.#isResting = true
    this.#leaving = node
  }

  /** Nothing was counted for them, for certain, so they may be sent again; but being too late once is enough. */
  #again(batch: readonly PendingTake[], wasLate: boolean): void {
    const returned: PendingTake[] = []
    for (const waiting of batch) {
      if (waiting.isRejected) continue
      if (wasLate && waiting.wasLate) {
        settle(waiting, new StoreUnavailableError(TOO_LATE, { kind: "timeout" }))
      } else {
        // Whose time is over meanwhile is told so in the queue.
        if (wasLate) waiting.wasLate = true
        returned.push(waiting)
        this.#watchdog.watch(waiting.deadlineMs)
      }
    }
    this.#queue.putBack(returned)
  }

  #fail(batch: readonly PendingTake[], error: unknown, node: Node): void {
    node.breaker.failed()
    const failure = failureOf(error, node.title)
    for (const waiting of batch) settle(waiting, failure)
  }

  /** Takes the call from those in flight; whether it had been given up. */
  #land(flight: Flight): boolean {
    this.#flights = this.#flights.filter((other) => other !== flight)
    return flight.isOver
  }

  #expire(): void {
    const node = this.#nodeOf()
    const nowMs = performance.now()
    for (const flight of this.#flights) {
      if (expire(flight.batch, nowMs, flight.node).length > 0) continue
      // Nobody waits for it: it is no reason to keep others back.
      flight.isOver = true
      this.#land(flight)
      flight.node.breaker.failed()
    }
    if (this.#queue.expire(nowMs, node)) node.breaker.failed()
    if (node.breaker.isOpen) this.#queue.reject(node.unavailable)
    for (const { batch } of this.#flights) this.#watchFor(batch)
    this.#watchFor(this.#queue.waiting)
    this.#next()
  }

  #watchFor(batch: readonly PendingTake[]): void {
    for (const { deadlineMs, isRejected } of batch) if (!isRejected) this.#watchdog.watch(deadlineMs)
  }
}

const TOO_LATE = "Redis was asked in time, but too late for it to count."
