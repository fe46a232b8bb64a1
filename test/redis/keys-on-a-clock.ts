import type { ChainableCommander, Redis } from "ioredis"
import type { Clock } from "../../packages/core/src/clock.ts"
import { commandsOf } from "../../packages/core/src/stores/redis/clients/commands-of.ts"
import type { RedisCommands } from "../../packages/core/src/stores/redis/commands.ts"

/** A key as the last call left it. */
export interface SeenKey {
  readonly value: string
  /** By the clock, when it expires: between two milliseconds, which are equal once it has been pinned, and mostly before. */
  readonly expiresMs: readonly [number, number]
  /** Whether its time to live was set by the last call. */
  readonly isWritten: boolean
}

/** Marks a key whose time to live has been seen: an instant that no script sets, so far away that it never comes. */
const SEEN_MS = 7_000_000_000_000

/**
 * Keys that live by a clock of the test's own. Each call of the store is one transaction, in which Redis expires
 * nothing, with a look at every key after it: the time to live that the script set is kept here, by the clock, and the
 * key is held in Redis until `expire` deletes it as a server of that time would.
 */
export class KeysOnAClock {
  /** The port that the store is made with. */
  readonly commands: RedisCommands
  readonly #client: Redis
  readonly #clock: Clock
  readonly #names: readonly string[]
  #calls = 0
  #seen = new Map<string, SeenKey>()

  /** `names` are all the keys that the store may use. */
  constructor(client: Redis, clock: Clock, names: readonly string[]) {
    this.#client = client
    this.#clock = clock
    this.#names = names
    this.commands = {
      ...commandsOf(client),
      evalsha: (sha, keys, args) => this.#watch((call) => call.evalsha(sha, keys.length, ...keys, ...args)),
      eval: (script, keys, args) => this.#watch((call) => call.eval(script, keys.length, ...keys, ...args)),
      del: (keys) => this.#watch((call) => call.del(...keys)),
    }
  }

  /** How many times the store has called. */
  get calls(): number {
    return this.#calls
  }

  /** What is under a key. */
  at(name: string): SeenKey | undefined {
    return this.#seen.get(name)
  }

  /** Says in which millisecond, of those that it may be, a key expires. */
  pin(name: string, expiresMs: number): void {
    const seen = this.#seen.get(name)
    if (seen !== undefined) this.#seen.set(name, { ...seen, expiresMs: [expiresMs, expiresMs] })
  }

  /** Deletes what has expired by now, and yields its names. Redis keeps a key through the millisecond it expires at. */
  async expire(): Promise<readonly string[]> {
    const gone = [...this.#seen].filter(([, { expiresMs }]) => expiresMs[1] < this.#clock.now())
    const names = gone.map(([name]) => name)
    for (const name of names) this.#seen.delete(name)
    if (names.length > 0) await this.#client.del(...names)
    return names
  }

  async #watch(add: (call: ChainableCommander) => ChainableCommander): Promise<unknown> {
    this.#calls++
    const call = add(this.#client.multi().time())
      .time()
      .mget(...this.#names)
    for (const name of this.#names) call.pexpiretime(name)
    for (const name of this.#names) call.hgetall(name)
    // Commands and no script: those of one transaction see what had not expired at its start.
    for (const name of this.#names) call.pexpireat(name, SEEN_MS)
    const [before, answer, after, values, ...rest] = (await call.exec()) ?? []
    const expiries = rest.slice(0, this.#names.length)
    // What is a text is no hash, and the other way round: one of the two failed.
    const hashes = rest.slice(this.#names.length, 2 * this.#names.length)
    const failure = answer?.[0]
    if (failure) throw failure
    const texts = values?.[1] as readonly unknown[]
    this.#note(
      msOf(before?.[1]),
      msOf(after?.[1]),
      texts.map((text, i) => text ?? hashText(hashes[i]?.[1])),
      expiries.map(([, expiresMs]) => Number(expiresMs)),
    )
    return answer?.[1]
  }

  /** Throws when a key has no time to live. */
  #note(beforeMs: number, afterMs: number, values: readonly unknown[], expiries: readonly number[]): void {
    const next = new Map<string, SeenKey>()
    this.#names.forEach((name, i) => {
      const value = values[i]
      const expiresMs = expiries[i] as number
      if (typeof value !== "string") return
      if (expiresMs < 0) throw new Error(`${name} holds ${value} without a time to live`)
      const nowMs = this.#clock.now()
      const isWritten = expiresMs !== SEEN_MS
      const keptMs = this.#seen.get(name)?.expiresMs
      if (!isWritten && keptMs === undefined) throw new Error(`${name} was deleted and is there again`)
      const setMs = [nowMs + expiresMs - afterMs, nowMs + expiresMs - beforeMs] as const
      next.set(name, { value, isWritten, expiresMs: isWritten ? setMs : (keptMs as SeenKey["expiresMs"]) })
    })
    this.#seen = next
  }
}

/** The fields of a hash as one text. */
function hashText(reply: unknown): string | undefined {
  return reply instanceof Error || Object.keys(reply as object).length === 0
    ? undefined
    : JSON.stringify(reply)
}

/** Milliseconds of a reply to TIME. */
function msOf(reply: unknown): number {
  const [seconds, microseconds] = (reply as readonly unknown[]).map(Number)
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
}
