import type { Clock } from "../../../ground/clock.ts"
import { StoreUnavailableError } from "../../../ground/errors.ts"
import { atDeadline, beforeDeadline, ignore, outsideRequests, setTimer } from "../../../ground/time.ts"
import { RoundTrips } from "../../round-trips.ts"
import type { RedisCommands } from "../commands.ts"
import { failureOf, isCode, type Reach, silent, titleOf } from "../failure.ts"
import type { CallTime, PolicyTable } from "../scripts/script-input.ts"
import { integerAt, type Reply, readReply } from "../scripts/script-reply.ts"
import type { TakeCall, TakeReply } from "../scripts/take-call.ts"
import { type Script, TAKE } from "../scripts.ts"
import { type ReplyArrival, ReplyOrder } from "./arrivals.ts"
import { Breaker } from "./breaker.ts"
import { ServerCall } from "./call.ts"
import { ServerTime } from "./server-time.ts"

/**
 * Yields the server's time, to who may run scripts and nothing else. SET … XX for a key that is never there writes
 * nothing, but fails where nothing could be written: on a replica, or without memory.
 */
const TIME =
  "redis.call('SET', KEYS[1], '', 'XX', 'PX', '1') local t = redis.call('TIME') return { t[1], t[2] }"

/** So long until a client that was not ready is looked at again: a node of a cluster may be replaced without a word. */
export const LOOK_AGAIN_MS = 25

/** So long what a server said of itself is told to who waits for it, at the least: then nobody knows what it is. */
const REPLICA_REMEMBERED_MS = 1_000

/** How the store keeps the time: by the servers, or by a clock that was given. */
export interface Timekeeping {
  /** Undefined: each server's own. */
  readonly clock: Clock | undefined
  /** Whether values have their whole window start, for a clock that keys do not expire by. */
  readonly isWide: boolean
}

/** A reply to a call, and when it arrived. */
export type Sent<Told> = Told & { readonly arrival: ReplyArrival }

/**
 * How long to wait. In the background nobody waits: the server is asked although the breaker is open, and whether it
 * answers, after longer than anybody would wait, neither opens nor closes that.
 */
export interface CallTimeout {
  readonly withinMs: number
  readonly inBackground?: boolean
}

/** One Redis server: what is known of its time, and whether it answers. */
export class Node {
  readonly breaker: Breaker
  /** What it is called in messages, from the beginning: a key that it served may be another one's by then. */
  readonly title: string
  /** What is said while the breaker is open: made once, since a stack is dear when every request gets it. */
  readonly unavailable: StoreUnavailableError
  #refusal: Promise<never> | undefined
  /** A key that this server was responsible for when it was last asked for. */
  key: string
  readonly #commands: RedisCommands
  readonly #timekeeping: Timekeeping
  readonly #time = new ServerTime()
  /** Of its replies to calls that decide, and to those that ask for its time. */
  readonly roundTrips = new RoundTrips()
  #learning: Promise<void> | undefined
  #longestWaitMs = 0
  readonly #arrivals = new ReplyOrder()
  /** When it last said that it is a replica, unless it has counted since. */
  #replicaAtMs = Number.NEGATIVE_INFINITY

  constructor(commands: RedisCommands, timekeeping: Timekeeping, key: string) {
    this.#commands = commands
    this.#timekeeping = timekeeping
    this.key = key
    this.title = titleOf(commands.nodeOf(key))
    this.unavailable = new StoreUnavailableError(
      `${this.title} does not answer; it is asked again in the background.`,
      { kind: "unavailable", outcome: "not-applied" },
    )
    this.breaker = new Breaker(() => this.#probe(), setTimer)
  }

  /** The same as an answer, for whoever asks: to throw it takes as long as to decide without the server. */
  get refusal(): Promise<never> {
    if (this.#refusal === undefined) {
      this.#refusal = outsideRequests(() => Promise.reject(this.unavailable))
      // Whoever asks hears of it, and at first nobody has.
      this.#refusal.catch(() => undefined)
    }
    return this.#refusal
  }

  get knowsTime(): boolean {
    return this.#timekeeping.clock !== undefined || this.#time.at(0) !== undefined
  }

  /** Somebody waits so long: a server that takes longer to answer is as good as none. */
  waitedFor(ms: number): void {
    this.#longestWaitMs = Math.max(this.#longestWaitMs, ms)
  }

  /** Whether this is longer than any decision waits. The breaker is about decisions, so it is not for such a call. */
  outlastsDecisions(ms: number): boolean {
    return ms > this.#longestWaitMs
  }

  isReady(): boolean {
    return this.#commands.isReady(this.key)
  }

  /** Why nobody was answered by now. A client that looks for the primary has no connection either. */
  get reach(): Reach {
    const rememberedMs = Math.max(this.#longestWaitMs, REPLICA_REMEMBERED_MS)
    if (performance.now() - this.#replicaAtMs <= rememberedMs) return "a replica"
    if (this.isReady()) return "connected"
    return this.#commands.isOpen() ? "not connected" : "closed"
  }

  /**
   * Asks the server for its time, once however many ask for it. Yields whether it is known now: not when the server
   * stayed silent for so long, or for as long as others wait, and may be asked again. Rejects when it cannot tell.
   */
  async learnTime(withinMs = 0): Promise<boolean> {
    this.#learning ??= this.#askTime()
    const learning = this.#learning
    try {
      // Callers keep the process alive while they wait for an answer.
      await beforeDeadline(learning, Math.max(withinMs, this.#longestWaitMs), ignore, false)
    } finally {
      // An answer that never comes must not be waited for again; but somebody else may have asked anew already.
      if (this.#learning === learning) this.#learning = undefined
    }
    return this.knowsTime
  }

  /** Decides the requests of a call; after the deadline the server counts none of them. */
  async take(call: TakeCall, deadlineMs: number): Promise<Sent<TakeReply>> {
    const { keys } = call
    const args = call.args(this.timeOf(deadlineMs))
    let sentAtMs = performance.now()
    let reply: unknown
    try {
      reply = await this.#commands.evalsha(TAKE.sha, keys, args)
    } catch (error) {
      sentAtMs = performance.now()
      reply = await this.#sendWhole(TAKE, keys, args, error)
    }
    const { nowMs, answers } = call.read(reply)
    this.#learn(nowMs, sentAtMs)
    return { nowMs, answers, arrival: this.#arrivals.add(sentAtMs, nowMs) }
  }

  /** What a script is told of time, when nobody waits for it after the deadline. */
  timeOf(deadlineMs: number): CallTime {
    const { clock, isWide } = this.#timekeeping
    if (clock !== undefined) return { nowMs: Math.floor(clock.now()), untilMs: undefined, isWide }
    const untilMs = this.#time.at(deadlineMs)
    return { nowMs: undefined, untilMs: untilMs === undefined ? undefined : Math.floor(untilMs), isWide }
  }

  /** Runs a script by itself. Rejects with StoreUnavailableError, by the deadline at the latest. */
  async ask(
    script: Script,
    keys: readonly string[],
    policies: PolicyTable,
    numbers: readonly number[],
    patience: CallTimeout,
  ): Promise<Reply> {
    return this.#within(patience, async (call) => {
      if (!this.knowsTime && !(await this.learnTime(patience.withinMs))) {
        throw silent(this.reach, this.title, "not-applied")
      }
      const args = [policies.input(this.timeOf(call.deadlineMs), numbers)]
      if (!call.send()) throw this.unavailable
      let sentAtMs = performance.now()
      let reply: unknown
      try {
        reply = await this.#commands.evalsha(script.sha, keys, args)
      } catch (error) {
        sentAtMs = performance.now()
        reply = await this.#sendWhole(script, keys, args, error)
      }
      const list = readReply(reply)
      this.#arrivals.add(sentAtMs, integerAt(list, 0))
      return list
    })
  }

  /** Deletes keys. Rejects with StoreUnavailableError, by the deadline at the latest. */
  async forget(keys: readonly string[], withinMs: number): Promise<void> {
    await this.#within({ withinMs }, async (call) => {
      if (!call.send()) throw this.unavailable
      const sentAtMs = performance.now()
      await this.#commands.del(keys)
      this.#arrivals.add(sentAtMs)
    })
  }

  /** Whether the server has become a replica: it has written nothing then. */
  isReplica(error: unknown): boolean {
    return isCode(error, "READONLY")
  }

  /** Whether a call was turned away before it did anything, and may be sent again in a moment: a slot on its way, too. */
  hasNotRun(error: unknown): boolean {
    return this.isReplica(error) || isCode(error, "TRYAGAIN")
  }

  /** Who is not answered by now is told so, until it counts again. */
  becameReplica(): void {
    this.#replicaAtMs = performance.now()
  }

  /** Makes the client look for the primary. */
  reconnect(): void {
    outsideRequests(() => this.#commands.reconnect(this.key))
  }

  async #within<Value>(
    { withinMs, inBackground = false }: CallTimeout,
    ask: (call: ServerCall) => Promise<Value>,
  ): Promise<Value> {
    if (!inBackground) {
      if (this.breaker.isOpen) throw this.unavailable
      this.waitedFor(withinMs)
    }
    const call = new ServerCall(withinMs)
    const late = (): Promise<never> => {
      call.giveUp()
      return Promise.reject(silent(this.reach, this.title, call.outcome))
    }
    try {
      // A client may connect to a node only when there is a command for it.
      const asked = outsideRequests(() =>
        this.#whenReady(call.deadlineMs, inBackground).then(() => ask(call)),
      )
      const value = await beforeDeadline(asked, withinMs, late, !inBackground)
      if (!inBackground) this.breaker.succeeded()
      return value
    } catch (error) {
      if (!inBackground) this.breaker.failed()
      throw failureOf(error, this.title, this.hasNotRun(error) ? "not-applied" : call.outcome)
    }
  }

  /** What a client keeps in a queue of its own is sent when nobody waits any more. */
  async #whenReady(deadlineMs: number, inBackground: boolean): Promise<void> {
    while (!this.isReady()) {
      await new Promise<void>((resolve) => {
        const timer = setTimer(resolve, LOOK_AGAIN_MS)
        if (inBackground) timer.unref()
      })
      if (performance.now() > deadlineMs) throw this.unavailable
    }
  }

  /** After a call by its digest has failed: the server may have forgotten the script, and then nothing has been done. */
  #sendWhole(
    { text }: Script,
    keys: readonly string[],
    args: readonly string[],
    error: unknown,
  ): Promise<unknown> {
    if (!isCode(error, "NOSCRIPT")) throw error
    return this.#commands.eval(text, keys, args)
  }

  /** Rejects if the server takes longer than any caller would wait, but not before it has answered. */
  async #probe(): Promise<void> {
    let isLate = false
    const markLate = (): void => {
      isLate = true
    }
    const cancel = atDeadline(this.#longestWaitMs, markLate, false)
    try {
      await this.#askTime()
      if (isLate) throw silent()
    } catch (error) {
      if (this.isReplica(error)) {
        this.becameReplica()
        this.reconnect()
      }
      throw error
    } finally {
      cancel()
    }
  }

  async #askTime(): Promise<void> {
    if (!this.isReady()) throw this.unavailable
    // In the same slot, and no counter's key: those go on after the brace.
    const key = this.key.slice(0, this.key.indexOf("}") + 1)
    const sentAtMs = performance.now()
    const reply = readReply(await this.#commands.eval(TIME, [key], []))
    const nowMs = Math.floor(integerAt(reply, 0) * 1000 + integerAt(reply, 1) / 1000)
    this.#learn(nowMs, sentAtMs)
  }

  /** What it said of its time it said as a primary. */
  #learn(nowMs: number, sentAtMs: number): void {
    const receivedAtMs = performance.now()
    this.#time.learn(nowMs, sentAtMs, receivedAtMs)
    this.roundTrips.add(receivedAtMs - sentAtMs)
    this.#replicaAtMs = Number.NEGATIVE_INFINITY
  }
}
