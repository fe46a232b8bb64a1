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
 * Returns the server's time. A script is used in case the Redis user may run only scripts. SET … XX on a key that never
 * exists writes nothing. But it fails if Redis cannot write, because it is a replica or out of memory.
 */
const TIME =
  "redis.call('SET', KEYS[1], '', 'XX', 'PX', '1') local t = redis.call('TIME') return { t[1], t[2] }"

/** Delay before a client that was not ready is checked again. */
export const LOOK_AGAIN_MS = 5

/** The server's clock must go back by this many milliseconds in one step to be reported. */
const WARNED_BACK_MS = 1_000

/** Least time for which timeout errors report that a server is a replica. After that, its role counts as unknown. */
const REPLICA_REMEMBERED_MS = 1_000

/** The source of the store's time: the servers or a given clock. */
export interface Timekeeping {
  /** The given clock; undefined means that each server's own clock is used. */
  readonly clock: Clock | undefined
  /** True if values contain their full window start, for a clock that keys do not expire by. */
  readonly isWide: boolean
}

/**
 * The timeout of a call. No caller waits for a background call. A background call is sent even if the breaker is open.
 * It may take longer than any caller would wait, so its outcome neither opens nor closes the breaker.
 */
export interface CallTimeout {
  readonly withinMs: number
  readonly inBackground?: boolean
}

/** One Redis server: its time, as far as it is known, and whether it responds. */
export class Node {
  readonly breaker: Breaker
  /** The server's name in messages. Set once, because another server may serve the key later. */
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
  /** Number of scripts that were sent and have not been answered. */
  #running = 0
  readonly #arrivals = new ReplyOrder()
  readonly #warn: ((event: StoreWarningEvent) => void) | undefined
  readonly #evictions: EvictionWatch | undefined
  /** When the server last replied as a replica, unless it has replied as a primary since. */
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
    this.breaker = new Breaker(() => this.#probe())
    this.#warn = warn
    if (warn === undefined) return
    this.#evictions = new EvictionWatch(this.title, () => commands.eval(EVICTIONS, [this.#slotKey], []), warn)
  }

  /** A key in the same slot. The key cannot be a counter's key, because those continue after the brace. */
  get #slotKey(): string {
    return this.key.slice(0, this.key.indexOf("}") + 1)
  }

  get knowsTime(): boolean {
    return this.#timekeeping.clock !== undefined || this.#time.at(0) !== undefined
  }

  /** Notes that a caller waits this long. A server that takes longer than all callers wait counts as unavailable. */
  waitedFor(ms: number): void {
    this.#longestWaitMs = Math.max(this.#longestWaitMs, ms)
  }

  /**
   * True if this is longer than any decision waits. The breaker is about decisions, so it does not apply to such a
   * call.
   */
  outlastsDecisions(ms: number): boolean {
    return ms > this.#longestWaitMs
  }

  isReady(): boolean {
    return this.#commands.isReady(this.key)
  }

  /**
   * The reason for a timeout now. The replica check comes first: a client that looks for a primary has lost its
   * connection.
   */
  get reach(): Reach {
    const rememberedMs = Math.max(this.#longestWaitMs, REPLICA_REMEMBERED_MS)
    if (performance.now() - this.#replicaAtMs <= rememberedMs) return "a replica"
    if (this.isReady()) return "connected"
    return this.#commands.isOpen() ? "not connected" : "closed"
  }

  /**
   * Asks the server for its time. Concurrent callers share one call. Returns true if the time is known now. Returns
   * false if the server stayed silent for `withinMs` and for as long as any other caller waits. The server may then be
   * asked again. Rejects if the server responds with an error.
   */
  async learnTime(withinMs = 0): Promise<boolean> {
    this.#learning ??= this.#askTime()
    const learning = this.#learning
    try {
      // Callers keep the process alive while they wait for a reply.
      await beforeDeadline(learning, Math.max(withinMs, this.#longestWaitMs), () => undefined, false)
    } finally {
      // Do not wait again for a reply that may never come. Another caller may already have started a new call.
      if (this.#learning === learning) this.#learning = undefined
    }
    return this.knowsTime
  }

  /** Decides the requests of a call. After the deadline, the server counts none of them. */
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
      // A script that is sent without the server's time would have no deadline.
      if (!this.knowsTime && !(await this.learnTime(patience.withinMs))) throw this.silence("not-applied")
      const args = [policies.input(this.timeOf(deadlineMs), numbers)]
      send()
      return this.#run(script, keys, args, (reply, sentAtMs) => {
        const list = readReply(reply)
        const nowMs = integerAt(list, 0)
        this.#arrivals.add(sentAtMs, nowMs)
        // A store of another data center only gets refunds. Its clock may be set, or it may drift.
        this.#noteTime(nowMs, sentAtMs)
        this.#evictions?.replied()
        return list
      })
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

  /** True if the error means that the server is a replica. A replica has written nothing. */
  isReplica(error: unknown): boolean {
    return isCode(error, "READONLY") || isCode(error, "MASTERDOWN")
  }

  /**
   * True if the server rejected a call before doing anything, so that the call may be resent in a moment. TRYAGAIN
   * means that the slot is being moved.
   */
  hasNotRun(error: unknown): boolean {
    return this.isReplica(error) || isCode(error, "TRYAGAIN")
  }

  /** Notes that the server has become a replica. Timeout errors report it until the server counts again. */
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

  /** Notes that a call failed, unless the breaker is open already. Returns the failure for the caller. */
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
   * Makes a call, and rejects at its deadline. `ask` calls `send` before it hands a command to the client, so that the
   * server may run it. `send` throws if the caller has already got an error that shows that nothing was sent.
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
      // A client may connect to a node only when there is a command for it.
      const asked = outsideRequests(() =>
        this.#whenReady(deadlineMs, inBackground).then(() => ask(send, deadlineMs)),
      )
      const value = await beforeDeadline(asked, withinMs, late, !inBackground)
      if (!inBackground) this.breaker.succeeded()
      return value
    } catch (error) {
      if (this.isReplica(error)) {
        this.becameReplica()
        // A reconnect loses the replies to calls in flight, and the store may have been closed since.
        if (this.#running === 0 && !this.breaker.isStopped) this.reconnect()
      }
      const failure = failureOf(error, this.title, this.hasNotRun(error) ? "not-applied" : outcome)
      if (!inBackground) this.failed(failure)
      throw failure
    }
  }

  /**
   * Waits until the client is ready. A client's own queue would be sent after the caller has stopped waiting. Rejects
   * after the deadline.
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
   * Sends a script by its digest, or as a whole if the server does not have it and has therefore done nothing. Resolves
   * with what `read` returns for the reply. Not an async function, because each `await` would delay every decision.
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
   * Asks the server for its time. Rejects immediately while the client is not ready. Rejects if the server takes longer
   * than any caller would wait, but not before it has responded.
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

  /** Learns the server's time from a reply, which only a primary can give. */
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
      message: `The clock of ${this.title} went back by ${Math.round(backMs / 1000)} s. Units come back only when it reaches its earlier time again. Keep it in sync by NTP.`,
    })
  }
}
