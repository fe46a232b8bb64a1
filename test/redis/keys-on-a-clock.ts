import type { ChainableCommander, Redis } from "ioredis"
import type { Clock } from "../../packages/core/src/ground/clock.ts"
import { commandsOf } from "../../packages/redis/src/clients/commands-of.ts"
import type { RedisCommands } from "../../packages/redis/src/commands.ts"
import { EVICTIONS } from "../../packages/redis/src/node/eviction-watch.ts"

/** A key after the last call. */
export interface SeenKey {
  readonly value: string
  /**
   * The earliest and the latest millisecond at which the key may expire by the clock. After `pin`, both are equal.
   */
  readonly expiresMs: readonly [number, number]
  /** True if the last call set the key's TTL. */
  readonly isWritten: boolean
}

/** The expiry of keys between calls, which is so late that no key expires by itself. */
const HELD_MS = 7_000_000_000_000

/** No key gets a shorter TTL than this. A script that starts late in its transaction must still find all keys. */
const LEAST_MS = 2_000
/** Added to a TTL that is below LEAST_MS. This time is longer than any extension by a script. */
const MORE_MS = 100_000

/**
 * Returns the time that is added to a key's remaining `leftMs` when a script begins. If a key expires too soon by
 * less than this time, the script cannot detect that.
 */
export function moreMs(leftMs: number): number {
  return leftMs < LEAST_MS ? MORE_MS : 0
}

/**
 * Keys that expire by a test clock. Each call of the store is one transaction that also reads the keys afterwards. A
 * script finds the TTL that remains by the clock, or a longer one. This class records the TTL that a script sets, by
 * the clock. In Redis, the key stays until `expire` deletes it, as a server at that time would.
 */
export class KeysOnAClock {
  /** The commands for a store, for tests that call `expire` between the store's calls. */
  readonly commands: RedisCommands
  /**
   * The commands for tests that do not call `expire`. These commands delete expired keys before each call, and run
   * calls one after the other.
   */
  readonly expiring: RedisCommands
  readonly #client: Redis
  readonly #clock: Clock
  readonly #names: readonly string[]
  #last: Promise<unknown> = Promise.resolve()
  #calls = 0
  readonly #seen = new Map<string, SeenKey>()

  /** `names` are keys that are read after each call, in addition to the keys of the call. */
  constructor(client: Redis, clock: Clock, names: readonly string[] = []) {
    this.#client = client
    this.#clock = clock
    this.#names = names
    const plain = commandsOf(client)
    const commands: RedisCommands = {
      ...plain,
      evalsha: (sha, keys, args) =>
        this.#watch(keys, (call) => call.evalsha(sha, keys.length, ...keys, ...args)),
      eval: (script, keys, args) =>
        // Do not record eviction checks, which the store makes by itself and whose script uses no key.
        script === EVICTIONS
          ? plain.eval(script, keys, args)
          : this.#watch(keys, (call) => call.eval(script, keys.length, ...keys, ...args)),
      del: (keys) => this.#watch(keys, (call) => call.del(...keys)),
    }
    this.commands = commands
    this.expiring = {
      ...commands,
      evalsha: (sha, keys, args) => this.#afterExpiring(() => commands.evalsha(sha, keys, args)),
      eval: (script, keys, args) => this.#afterExpiring(() => commands.eval(script, keys, args)),
      del: (keys) => this.#afterExpiring(() => commands.del(keys)),
    }
  }

  /** Number of calls that the store has made. */
  get calls(): number {
    return this.#calls
  }

  /** Returns the value and expiry of a key. */
  at(name: string): SeenKey | undefined {
    return this.#seen.get(name)
  }

  /** Sets the exact millisecond at which a key expires, within its possible range. */
  pin(name: string, expiresMs: number): void {
    const seen = this.#seen.get(name)
    if (seen !== undefined) this.#seen.set(name, { ...seen, expiresMs: [expiresMs, expiresMs] })
  }

  /**
   * Deletes the keys that have expired and returns their names. A key still exists in the millisecond at which it
   * expires, as in Redis.
   */
  async expire(): Promise<readonly string[]> {
    const gone = [...this.#seen].filter(([, { expiresMs }]) => expiresMs[1] < this.#clock.now())
    const names = gone.map(([name]) => name)
    for (const name of names) this.#seen.delete(name)
    if (names.length > 0) await this.#client.del(...names)
    return names
  }

  #afterExpiring(call: () => Promise<unknown>): Promise<unknown> {
    const made = this.#last
      .catch(() => undefined)
      .then(() => this.expire())
      .then(call)
    this.#last = made
    return made
  }

  async #watch(
    keys: readonly string[],
    add: (call: ChainableCommander) => ChainableCommander,
  ): Promise<unknown> {
    this.#calls++
    const names = [...new Set([...this.#names, ...keys])]
    const before = this.#client.multi()
    for (const name of names) before.pexpire(name, this.#givenMs(name))
    for (const name of names) before.pexpiretime(name)
    const call = add(before.time())
      .time()
      .mget(...names)
    for (const name of names) call.pexpiretime(name)
    // Use a transaction instead of a script. All of its commands find the keys that had not expired when the
    // transaction started.
    for (const name of names) call.pexpireat(name, HELD_MS)
    for (const name of names) call.hgetall(name)
    const replies = (await call.exec()) ?? []
    // A key is either a string or a hash, so one of the two reads fails.
    const hashes = replies.splice(-names.length, names.length)
    for (const [error] of replies) if (error) throw error
    const seen = replies.map(([, reply]) => reply).slice(names.length)
    const [given, kept] = [seen.splice(0, names.length), seen.splice(-2 * names.length, names.length)]
    const [startedAt, answer, endedAt, texts] = seen
    this.#note(
      names,
      msOf(startedAt),
      msOf(endedAt),
      (texts as readonly unknown[]).map((text, i) => text ?? hashText(hashes[i]?.[1])),
      given.map(Number),
      kept.map(Number),
    )
    return answer
  }

  #givenMs(name: string): number {
    const seen = this.#seen.get(name)
    const leftMs = seen === undefined ? 0 : Math.max(0, seen.expiresMs[1] - this.#clock.now())
    return leftMs + moreMs(leftMs)
  }

  /**
   * Records the keys. `given` contains their expiries before the script, and `kept` their expiries after it. Throws
   * when a key has no TTL.
   */
  #note(
    names: readonly string[],
    beforeMs: number,
    afterMs: number,
    values: readonly unknown[],
    given: readonly number[],
    kept: readonly number[],
  ): void {
    names.forEach((name, i) => {
      const value = values[i]
      const expiresMs = kept[i] as number
      if (typeof value !== "string") {
        this.#seen.delete(name)
        return
      }
      if (expiresMs < 0) throw new Error(`${name} holds ${value} without a time to live`)
      const nowMs = this.#clock.now()
      const isWritten = expiresMs !== given[i]
      let range: SeenKey["expiresMs"] = [nowMs + expiresMs - afterMs, nowMs + expiresMs - beforeMs]
      if (!isWritten) {
        const kept = this.#seen.get(name)?.expiresMs
        if (kept === undefined) throw new Error(`${name} was deleted and is there again`)
        // If the key did not get extra time, a new expiry near the old one cannot be distinguished from the old one.
        range = moreMs(kept[1] - nowMs) > 0 ? kept : [Math.min(range[0], kept[0]), kept[1]]
      }
      this.#seen.set(name, { value, isWritten, expiresMs: range })
    })
  }
}

/** Returns the fields of a hash as one string. */
function hashText(reply: unknown): string | undefined {
  return reply instanceof Error || Object.keys(reply as object).length === 0
    ? undefined
    : JSON.stringify(reply)
}

/** Returns the milliseconds of a reply to TIME. */
function msOf(reply: unknown): number {
  const [seconds, microseconds] = (reply as readonly unknown[]).map(Number)
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
}
