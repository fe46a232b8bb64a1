import { inspect } from "node:util"
import type { Clock } from "../../ground/clock.ts"
import { InvalidOptionError, type Problem } from "../../ground/errors.ts"
import { LONGEST_TIMER_MS } from "../../ground/time.ts"
import { commandsOf, type RedisClient } from "./clients/commands-of.ts"
import type { RedisCommands } from "./commands.ts"

/** What a Redis store is made with. */
export interface RedisStoreOptions {
  /**
   * A client of ioredis 5 or 6 (`new Redis()`, with Sentinel too, or `new Cluster()`), or of node-redis 5 or 6
   * (`createClient()` or `createCluster()`). It stays the app's, which connects and closes it.
   */
  readonly client: RedisClient
  /** Before every key, without braces; "" by default. Keys always begin with `sl2:` after it. */
  readonly prefix?: string | undefined
  /**
   * Milliseconds for which counters of refused requests are remembered, 10,000 by default; 0 asks Redis every time. What
   * another process does is seen after this time at the latest; what this process does is seen at once.
   */
  readonly denyCacheMs?: number | undefined
  /** Milliseconds after which a silent Redis counts as gone, where the caller names none, from the end of the callback that asks: 50. */
  readonly timeoutMs?: number | undefined
  /** A clock in place of the server's, for tests and replays. Processes that share counters must share it. */
  readonly clock?: Clock | undefined
}

export interface ParsedRedisOptions {
  readonly commands: RedisCommands
  readonly prefix: string
  readonly denyCacheMs: number
  readonly timeoutMs: number
  readonly clock: Clock | undefined
}

const NAMES = "client, prefix, denyCacheMs, timeoutMs, clock"
/** What the clients and the stores of other rate limiters call an option, and its name here. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  keyPrefix: "prefix",
  redis: "client",
  sendCommand: "client",
  sendCommandCluster: "client",
  storeClient: "client",
}
const LONGEST_PREFIX = 64

/**
 * The options with their defaults.
 * @throws {@link InvalidOptionError} with everything that is wrong or misspelt.
 */
export function parseOptions(options: RedisStoreOptions): ParsedRedisOptions {
  if (typeof options !== "object" || options === null || isClient(options)) {
    // Not shown: the URL and the client of a Redis have its password.
    const given = isClient(options)
      ? "the client itself"
      : typeof options === "string"
        ? "a text"
        : inspect(options)
    const message = `${given} is no set of options`
    throw new InvalidOptionError([{ path: "", message, accepted: `redisStore({ ${NAMES} })` }])
  }
  const problems = Object.entries(options).flatMap(([path, value]) => problemOf(path, value) ?? [])
  let commands: RedisCommands | undefined
  try {
    commands = commandsOf(options.client)
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    problems.unshift(...error.problems)
  }
  if (commands === undefined || problems.length > 0) throw new InvalidOptionError(problems)
  const { prefix = "", denyCacheMs = 10_000, timeoutMs = 50, clock } = options
  return { commands, prefix, denyCacheMs, timeoutMs, clock }
}

/** By what clients of all libraries have. Nothing is read of an object that has a `client` of its own. */
function isClient(options: unknown): boolean {
  if (typeof options !== "object" || options === null || Object.hasOwn(options, "client")) return false
  return typeof (options as { readonly duplicate?: unknown }).duplicate === "function"
}

function problemOf(path: string, value: unknown): Problem | undefined {
  if (value === undefined) return undefined
  const shown = inspect(value, { depth: 0 })
  switch (path) {
    case "client":
      return undefined
    case "prefix":
      if (typeof value === "string" && value.length <= LONGEST_PREFIX && /^[\x20-\x7e]*$/.test(value)) {
        // A brace would be taken for the hash tag, by which a cluster finds the slot.
        if (!/[{}]/.test(value)) return undefined
      }
      return {
        path,
        message: `${shown} is no prefix`,
        accepted: `up to ${LONGEST_PREFIX} characters of printable ASCII without { and }`,
      }
    case "denyCacheMs":
      return isMs(value, 0) ? undefined : wrongMs(path, shown, 0)
    case "timeoutMs":
      return isMs(value, 1) ? undefined : wrongMs(path, shown, 1)
    case "clock":
      if (typeof (value as Partial<Clock> | null)?.now === "function") return undefined
      return { path, message: "has no now()", accepted: "{ now(): epoch milliseconds }" }
    default:
      return Object.hasOwn(ELSEWHERE, path)
        ? { path, message: `is no option of the Redis store; here it is "${ELSEWHERE[path]}"` }
        : { path, message: "is no option of the Redis store", accepted: NAMES }
  }
}

function isMs(value: unknown, least: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= LONGEST_TIMER_MS
}

function wrongMs(path: string, shown: string, least: number): Problem {
  const accepted = `a whole number of milliseconds from ${least} to ${LONGEST_TIMER_MS}`
  return { path, message: `${shown} is no such time`, accepted }
}
