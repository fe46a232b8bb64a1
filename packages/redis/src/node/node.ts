import { type Clock, StoreUnavailableError } from "@sluice/core"
import { beforeDeadline, outsideRequests, sentenceOf } from "@sluice/core/kit"
import { RoundTrips, type StoreOutcome, type StoreWarningEvent, setTimer } from "@sluice/core/stores"
import type { RedisCommands } from "../commands.ts"
import { failureOf, isCode, type Reach, silent, titleOf } from "../failure.ts"
import type { CallTime, PolicyTable } from "../scripts/script-input.ts"
import { integerAt, type Reply, readReply } from "../scripts/script-reply.ts"
import type { TakeCall, TakeReply } from "../scripts/take-call.ts"
import { type Script, TAKE } from "../scripts.ts"
import { type ReplyArrival, ReplyOrder } from "./arrivals.ts"
import { Breaker } from "./breaker.ts"
import { EVICTIONS, EvictionWatch } from "./eviction-watch.ts"
import { ServerTime } from "./server-time.ts"

/**
 * Returns the server's time. This is a script because the Redis user may only have permission to run scripts. SET …
 * XX on a key that never exists writes nothing, but it fails if Redis cannot write. For example, a replica cannot
 * write, and neither can a server that is out of memory.
 */
const TIME =
  "redis.call('SET', KEYS[1], '', 'XX', 'PX', '1') local t = redis.call('TIME') return { t[1], t[2] }"

/** Delay before a client that was not ready is checked again. */
export const LOOK_AGAIN_MS = 5

/** If the server's clock goes back by at least this many milliseconds in one step, a warning is emitted. */
const WARNED_BACK_MS = 1_000

/**
 * Shortest time for which timeout errors report that a server is a replica. After that, the server's role counts as
 * unknown.
 */
const REPLICA_REMEMBERED_MS = 1_000

/** The source of the store's time: the servers or a given clock. */
export interface Timekeeping {
  /** The given clock; undefined means that each server's own clock is used. */
  readonly clock: Clock | undefined
  /** True if stored values contain their full window start, because keys do not expire by the given clock. */
  readonly isWide: boolean
}

/**
 * The timeout of a call. No caller waits for a background call, and it is sent even if the breaker is open. A
 * background call may take longer than any caller would wait, so its outcome neither opens nor closes the breaker.
 */
export interface CallTimeout {
  readonly withinMs: number
  readonly inBackground?: boolean
}

/** One Redis server. Tracks the server's time and whether the server responds. */
export class Node {
  readonly breaker: Breaker
  /**
   * The server's name in messages. Set only once, because the client may later return another server for the same key.
   */
  readonly title: string
  /**
   * The error while the breaker is open, with the reason of the last failure. Not created for each request, because a
   * stack trace is expensive.
   */
  unavailable = silent()
  /** A key that this server served when `nodeOf` last returned it. */
  key: string
  readonly #commands: RedisCommands
  readonly #timekeeping: Timekeeping
  readonly #time = new ServerTime()
  /** Round-trip times of calls that decide requests, and of calls that ask for the server's time. */
  readonly roundTrips = new RoundTrips()
  #learning: Promise<void> | undefined
  #longestWaitMs = 0
  /** Number of scripts that were sent and have no reply yet. */
  #running = 0
  readonly #arrivals = new ReplyOrder()
  readonly #warn: ((event: StoreWarningEvent) => void) | undefined
  readonly #evictions: EvictionWatch | undefined
  /** The time of the server's last reply as a replica. Minus infinity if the server has replied as a primary since. */
  #replicaAtMs = Number.NEGATIVE_INFINITY

  constructor(
    commands: RedisCommands,
    timekeeping: Timekeeping,
    key: string,
    warn?: (event: StoreWarningEvent) => void,
  ) {
    this.#commands = commands
    this.#timekeeping = timekeeping
    this.key = key
    this.title = titleOf(commands.nodeOf(key))
    const { isPerRequest = false } = commands
    this.breaker = new Breaker(() => this.#probe(), isPerRequest)
    this.#warn = warn
    if (warn === undefined || isPerRequest) return
    this.#evictions = new EvictionWatch(this.title, () => commands.eval(EVICTIONS, [this.#slotKey], []), warn)
  }

  /**
   * A key in the same slot. This key cannot be a counter's key, because counter keys continue after the closing brace.
   */
  get #slotKey(): string {
    return this.key.slice(0, this.key.indexOf("}") + 1)
  }

  /**
   * True if a call can have a deadline. Also true if a request may not wait for another request's question about the
   * time. The first call to the server then has no deadline of its own.
   */
  get knowsTime(): boolean {
    const { clock } = this.#timekeeping
    return clock !== undefined || this.#time.at(0) !== undefined || this.#commands.isPerRequest === true
  }

  /** Notes the timeout of a caller. A server that takes longer than the longest timeout counts as unavailable. */
  waitedFor(ms: number): void {
    this.#longestWaitMs = Math.max(this.#longestWaitMs, ms)
  }

  /**
   * True if a call with this timeout waits longer than any decision. The breaker does not apply to such a call,
   * because it only protects decisions.
   */
  outlastsDecisions(ms: number): boolean {
    return ms > this.#longestWaitMs
  }

  isReady(): boolean {
    return this.#commands.isReady(this.key)
  }

  /**
   * The reason for a timeout at the current time. First checks for a replica, because a client that looks for a
   * primary has no connection.
   */
  get reach(): Reach {
    const rememberedMs = Math.max(this.#longestWaitMs, REPLICA_REMEMBERED_MS)
    if (performance.now() - this.#replicaAtMs <= rememberedMs) return "a replica"
    if (this.isReady()) return "connected"
    return this.#commands.isOpen() ? "not connected" : "closed"
  }

  /**
   * Requests the server's time. Concurrent callers share one call. Returns true if the time is now known. Returns
   * false if the server did not reply within `withinMs` or the longest timeout of any caller, whichever is longer.
   * The next call then requests the time again. Rejects if the server responds with an error.
   */
  async learnTime(withinMs = 0): Promise<boolean> {
    this.#learning ??= this.#askTime()
    const learning = this.#learning
    try {
      // This wait need not keep the process alive, because the callers do so while they wait for a reply.
      await beforeDeadline(learning, Math.max(withinMs, this.#longestWaitMs), () => undefined, false)
    } finally {
      // Do not wait again for a reply that may never come. Another caller may already have started a new call.
      if (this.#learning === learning) this.#learning = undefined
    }
    return this.knowsTime
  }

  /** Decides the requests of a call. The server counts no request after the deadline. */
  take(call: TakeCall, deadlineMs: number): Promise<TakeReply & { readonly arrival: ReplyArrival }> {
    return this.#run(TAKE, call.keys, call.args(this.timeOf(deadlineMs)), (reply, sentAtMs) => {
      const { nowMs, answers } = call.read(reply)
      this.#learn(nowMs, sentAtMs)
      this.#evictions?.replied()
      return { nowMs, answers, arrival: this.#arrivals.add(sentAtMs, nowMs) }
    })
  }

  /** Returns the time arguments of a script that must not count after the deadline. */
  timeOf(deadlineMs: number): CallTime {
    const { clock, isWide } = this.#timekeeping
    if (clock !== undefined) return { nowMs: Math.floor(clock.now()), untilMs: undefined, isWide }
    const untilMs = this.#time.at(deadlineMs)
    return { nowMs: undefined, untilMs: untilMs === undefined ? undefined : Math.floor(untilMs), isWide }
  }

  /** Runs a single script. Rejects with StoreUnavailableError, by the deadline at the latest. */
  async ask(
    script: Script,
    keys: readonly string[],
    policies: PolicyTable,
    numbers: readonly number[],
    patience: CallTimeout,
  ): Promise<Reply> {
    return this.#within(patience, async (send, deadlineMs) => {
      // Do not send a script while the server's time is unknown, because the script would have no deadline.
      if (!this.knowsTime && !(await this.learnTime(patience.withinMs))) throw this.silence("not-applied")
      const args = [policies.input(this.timeOf(deadlineMs), numbers)]
      send()
      return this.#run(script, keys, args, (reply, sentAtMs) => {
        const list = readReply(reply)
        const nowMs = integerAt(list, 0)
        this.#arrivals.add(sentAtMs, nowMs)
        // A store in another data center only receives refunds, so learn the time from their replies. Otherwise a
        // drift or change of that server's clock would go unnoticed.
        this.#noteTime(nowMs, sentAtMs)
        this.#evictions?.replied()
        return list
      })
    })
  }

  /**
   * Runs a script that no decision waits for, at most one at a time. Rejects with StoreUnavailableError, by the deadline
   * at the latest, and immediately while the server has not replied to the previous script.
   */
  async call(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    withinMs: number,
  ): Promise<Reply> {
    if (this.#running > 0 || !this.#commands.isOpen()) throw this.silence("not-applied")
    return this.#within({ withinMs, inBackground: true }, (send) => {
      send()
      return this.#run(script, keys, args, readReply)
    })
  }

  /** Deletes keys. Rejects with StoreUnavailableError, by the deadline at the latest. */
  async forget(keys: readonly string[], withinMs: number): Promise<void> {
    await this.#within({ withinMs }, async (send) => {
      send()
      const sentAtMs = performance.now()
      await this.#commands.del(keys)
      this.#arrivals.add(sentAtMs)
    })
  }

  /** True if the error means that the server is a replica. A replica has not written anything. */
  isReplica(error: unknown): boolean {
    return isCode(error, "READONLY") || isCode(error, "MASTERDOWN")
  }

  /**
   * True if the server rejected a call without running it, so the call may be resent after a delay. TRYAGAIN means
   * that the slot is being migrated.
   */
  hasNotRun(error: unknown): boolean {
    return this.isReplica(error) || isCode(error, "TRYAGAIN")
  }

  /** Notes that the server has become a replica. Timeout errors report this until the server replies as a primary. */
  becameReplica(): void {
    this.#replicaAtMs = performance.now()
  }

  /** Makes the client look for the primary. */
  reconnect(): void {
    outsideRequests(() => this.#commands.reconnect(this.key))
  }

  /** Returns the error for a missed deadline. */
  silence(outcome?: StoreOutcome): StoreUnavailableError {
    return silent(this.reach, this.title, outcome)
  }

  /** Counts a failed call, unless the breaker is already open. Returns the error for the caller. */
  failed(error: unknown): StoreUnavailableError {
    const failure = failureOf(error, this.title)
    if (this.breaker.isOpen) return failure
    this.breaker.failed()
    if (this.breaker.isOpen) this.#explain(failure)
    return failure
  }

  #explain({ message, cause }: StoreUnavailableError): void {
    this.unavailable = new StoreUnavailableError(
      `${sentenceOf(message)} The store keeps trying in the background.`,
      { kind: "unavailable", outcome: "not-applied", ...(cause !== undefined && { cause }) },
    )
  }

  /**
   * Makes a call, and rejects at its deadline. `ask` must call `send` before it passes a command to the client,
   * because the server may run the command from then on. `send` throws if the caller has already received an error
   * whose outcome is "not-applied".
   */
  async #within<Value>(
    { withinMs, inBackground = false }: CallTimeout,
    ask: (send: () => void, deadlineMs: number) => Promise<Value>,
  ): Promise<Value> {
    if (!inBackground) {
      if (this.breaker.isOpen) throw this.unavailable
      this.waitedFor(withinMs)
    }
    const deadlineMs = performance.now() + withinMs
    let outcome: StoreOutcome = "not-applied"
    let isOver = false
    const send = (): void => {
      if (isOver) throw this.unavailable
      outcome = "unknown"
    }
    const late = (): Promise<never> => {
      isOver = true
      return Promise.reject(this.silence(outcome))
    }
    try {
      // This runs outside requests, because the client may open a connection to send the command.
      const asked = outsideRequests(() =>
        this.#whenReady(deadlineMs, inBackground).then(() => ask(send, deadlineMs)),
      )
      const value = await beforeDeadline(asked, withinMs, late, !inBackground)
      if (!inBackground) this.breaker.succeeded()
      return value
    } catch (error) {
      if (this.isReplica(error)) {
        this.becameReplica()
        // Reconnect only without calls in flight, because a reconnect would lose their replies. Do not reconnect
        // after the store was closed.
        if (this.#running === 0 && !this.breaker.isStopped) this.reconnect()
      }
      const failure = failureOf(error, this.title, this.hasNotRun(error) ? "not-applied" : outcome)
      if (!inBackground) this.failed(failure)
      throw failure
    }
  }

  /**
   * Waits until the client is ready. A command in the client's own queue could be sent after the caller has stopped
   * waiting. Rejects after the deadline.
   */
  async #whenReady(deadlineMs: number, inBackground: boolean): Promise<void> {
    while (!this.isReady()) {
      await new Promise<void>((resolve) => {
        const timer = setTimer(resolve, LOOK_AGAIN_MS)
        if (inBackground) timer.unref()
      })
      if (performance.now() > deadlineMs) throw this.silence("not-applied")
    }
  }

  /**
   * Sends a script's digest. If the server does not have the script, it has done nothing, so sends the whole script.
   * Resolves with what `read` returns for the reply. Not an async function, because each `await` would delay every
   * decision.
   */
  #run<Value>(
    { sha, text }: Script,
    keys: readonly string[],
    args: readonly string[],
    read: (reply: unknown, sentAtMs: number) => Value,
  ): Promise<Value> {
    const sentAtMs = performance.now()
    this.#running++
    return this.#commands.evalsha(sha, keys, args).then(
      (reply) => {
        this.#running--
        return read(reply, sentAtMs)
      },
      async (error: unknown) => {
        this.#running--
        if (!isCode(error, "NOSCRIPT")) throw error
        const sentWholeAtMs = performance.now()
        return read(await this.#commands.eval(text, keys, args), sentWholeAtMs)
      },
    )
  }

  /**
   * Requests the server's time. Rejects immediately while the client is not ready. If the server takes longer than
   * the longest timeout, rejects after the server has responded.
   */
  async #probe(): Promise<void> {
    const asking = this.#askTime()
    const late = (): Promise<never> =>
      asking.then(() => {
        throw this.silence()
      })
    try {
      await beforeDeadline(asking, this.#longestWaitMs, late, false)
    } catch (error) {
      if (this.isReplica(error)) {
        this.becameReplica()
        this.reconnect()
      }
      this.#explain(failureOf(error, this.title))
      throw error
    }
  }

  async #askTime(): Promise<void> {
    if (!this.isReady()) throw this.silence()
    const sentAtMs = performance.now()
    const reply = readReply(await this.#commands.eval(TIME, [this.#slotKey], []))
    const nowMs = Math.floor(integerAt(reply, 0) * 1000 + integerAt(reply, 1) / 1000)
    this.#learn(nowMs, sentAtMs)
  }

  /** Updates the estimate of the server's time from a reply. Only a primary can send such a reply. */
  #learn(nowMs: number, sentAtMs: number): void {
    this.#noteTime(nowMs, sentAtMs)
    this.roundTrips.add(sentAtMs)
    this.#replicaAtMs = Number.NEGATIVE_INFINITY
  }

  #noteTime(nowMs: number, sentAtMs: number): void {
    const backMs = this.#time.learn(nowMs, sentAtMs, performance.now())
    if (backMs < WARNED_BACK_MS || this.#timekeeping.clock !== undefined) return
    this.#warn?.({
      type: "warning",
      code: "SLUICE_STORE_CLOCK_BACK",
      subject: this.title,
      message: `The clock of ${this.title} went back by ${Math.round(backMs / 1000)} s. Units come back only when the clock reaches its earlier time again. Keep the clock in sync with NTP.`,
    })
  }
}
