import type { ChainableCommander, Redis } from "ioredis"
import type { Clock } from "../../packages/core/src/ground/clock.ts"
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

/** When keys expire between calls: never. */
const HELD_MS = 7_000_000_000_000

/** A script may begin so long after its transaction, and is to find all keys: none is given less. */
const LEAST_MS = 2_000
/** What a key is given beside what it has left, where that is little: more than any script sets one on by. */
const MORE_MS = 100_000

/** So much longer than it has left does a key live when a script begins: what ends too soon by less it does not see. */
export function moreMs(leftMs: number): number {
  return leftMs < LEAST_MS ? MORE_MS : 0
}

/**
 * Keys that live by a clock of the test's own. Each call of the store is one transaction, with a look at the keys after
 * it: a script finds the time to live that is left by the clock, or more; the one that it sets is kept here, by the
 * clock, and the key is held in Redis until `expire` deletes it as a server of that time would.
 */
export class KeysOnAClock {
  /** The port that the store is made with, for who calls `expire` between its calls. */
  readonly commands: RedisCommands
  /** The same for who does not: what has expired is deleted before each call, and calls are made one after the other. */
  readonly expiring: RedisCommands
  readonly #client: Redis
  readonly #clock: Clock
  readonly #names: readonly string[]
  #last: Promise<unknown> = Promise.resolve()
  #calls = 0
  readonly #seen = new Map<string, SeenKey>()

  /** `names` are keys that are looked at after each call, beside those that it is for. */
  constructor(client: Redis, clock: Clock, names: readonly string[] = []) {
    this.#client = client
    this.#clock = clock
    this.#names = names
    const commands: RedisCommands = {
      ...commandsOf(client),
      evalsha: (sha, keys, args) =>
        this.#watch(keys, (call) => call.evalsha(sha, keys.length, ...keys, ...args)),
      eval: (script, keys, args) =>
        this.#watch(keys, (call) => call.eval(script, keys.length, ...keys, ...args)),
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
    // Commands and no script: those of one transaction see what had not expired at its start.
    for (const name of names) call.pexpireat(name, HELD_MS)
    for (const name of names) call.hgetall(name)
    const replies = (await call.exec()) ?? []
    // What is a text is no hash, and the other way round: one of the two failed.
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

  /** `given` is when the keys expired as the script found them, `kept` as it left them. Throws when one has no time to live. */
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
        // Unless it was given more, one that was set anew to nearly the same instant looks as if it had not been.
        range = moreMs(kept[1] - nowMs) > 0 ? kept : [Math.min(range[0], kept[0]), kept[1]]
      }
      this.#seen.set(name, { value, isWritten, expiresMs: range })
    })
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
