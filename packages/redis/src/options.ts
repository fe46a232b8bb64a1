import { inspect } from "node:util"
import { type Clock, InvalidOptionError, type Problem } from "@sluice/core"
import { clockOption, LONGEST_TIMER_MS, type OptionCheck, requireOptions } from "@sluice/core/kit"
import { commandsOf, type RedisClient } from "./clients/commands-of.ts"
import type { RedisCommands } from "./commands.ts"

/** The options of a Redis store. */
export interface RedisStoreOptions {
  /**
   * A client of ioredis 5 or 6 or of iovalkey (`new Redis()`, also with Sentinel, or `new Cluster()`), of node-redis 5
   * or 6 (`createClient()` or `createCluster()`), or of Valkey GLIDE 2 (`GlideClient` or `GlideClusterClient`). The app
   * connects and closes it. In runtimes without connections, the client of {@link redisOverHttp}.
   */
  readonly client: RedisClient
  /** A prefix for every key, without braces; "" by default. `sl2:` always follows the prefix. */
  readonly prefix?: string | undefined
  /**
   * Milliseconds for which the process caches counters of refused requests, 10,000 by default; 0 disables the cache.
   * The process sees changes by other processes after at most this time, and its own changes immediately.
   */
  readonly denyCacheMs?: number | undefined
  /**
   * Milliseconds to wait for Redis if the caller does not set a timeout, 50 by default. The timeout starts at the end
   * of the callback that makes the request.
   */
  readonly timeoutMs?: number | undefined
  /**
   * A clock to use instead of the server's, for tests and replays. Processes that share counters must use the same
   * clock.
   */
  readonly clock?: Clock | undefined
}

export interface ParsedRedisOptions {
  readonly commands: RedisCommands
  readonly prefix: string
  readonly denyCacheMs: number
  readonly timeoutMs: number
  readonly clock: Clock | undefined
}

/**
 * Option names of Redis clients and of other rate limiters' stores, with the name of the same option in `redisStore`.
 */
const ELSEWHERE: Readonly<Record<string, string>> = {
  keyPrefix: "prefix",
  redis: "client",
  sendCommand: "client",
  sendCommandCluster: "client",
  storeClient: "client",
}
const LONGEST_PREFIX = 64

/** The checks of the options that every function with a client has. */
export const CLIENT_CHECKS: Readonly<Record<string, OptionCheck>> = {
  // Checked by `commandsOf`. Problems with the client are listed before problems with other options.
  client: () => undefined,
  prefix(value) {
    // Reject braces, because a cluster would treat the text between them as the hash tag that determines the slot.
    if (typeof value === "string" && value.length <= LONGEST_PREFIX && /^[ -z|~]*$/.test(value))
      return undefined
    const accepted = `up to ${LONGEST_PREFIX} printable ASCII characters, except { and }`
    return { message: `${inspect(value, { depth: 0 })} is not a valid prefix`, accepted }
  },
}

const CHECKS: Readonly<Record<string, OptionCheck>> = {
  ...CLIENT_CHECKS,
  denyCacheMs: timeFrom(0),
  timeoutMs: timeFrom(1),
  clock: clockOption,
}

/**
 * Returns the options with their defaults.
 * @throws {@link InvalidOptionError} with all invalid and unknown options.
 */
export function parseOptions(options: RedisStoreOptions): ParsedRedisOptions {
  const commands = commandsIn("redisStore", options, CHECKS, ELSEWHERE)
  const { prefix = "", denyCacheMs = 10_000, timeoutMs = 50, clock } = options
  return { commands, prefix, denyCacheMs, timeoutMs, clock }
}

/**
 * Returns the commands of the client in the options of the function `title`.
 * @throws {@link InvalidOptionError} with all invalid and unknown options.
 */
export function commandsIn(
  title: string,
  options: { readonly client: RedisClient },
  checks: Readonly<Record<string, OptionCheck>>,
  elsewhere?: Readonly<Record<string, string>>,
): RedisCommands {
  if (typeof options !== "object" || options === null || isClient(options)) {
    // Do not include a URL or a client in the message, because it may contain the Redis password.
    const given = isClient(options)
      ? "the client itself"
      : typeof options === "string"
        ? "a string"
        : inspect(options)
    const message = `${given} is not an options object`
    const accepted = `${title}({ ${Object.keys(checks).join(", ")} })`
    throw new InvalidOptionError([{ path: "", message, accepted }])
  }
  let commands: RedisCommands | undefined
  let problems: readonly Problem[] = []
  try {
    commands = commandsOf(options.client)
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    problems = error.problems
  }
  requireOptions(title, options, checks, problems, elsewhere)
  return commands as RedisCommands
}

/**
 * True for a client of any library, because all clients have `duplicate()` or, over HTTP, `command()`. False for an
 * object with a `client` of its own.
 */
function isClient(options: unknown): boolean {
  if (typeof options !== "object" || options === null || Object.hasOwn(options, "client")) return false
  const { duplicate, command } = options as { readonly duplicate?: unknown; readonly command?: unknown }
  return typeof duplicate === "function" || typeof command === "function"
}

function timeFrom(leastMs: number): OptionCheck {
  return (value) => {
    const ms = Number.isSafeInteger(value) ? (value as number) : -1
    if (ms >= leastMs && ms <= LONGEST_TIMER_MS) return undefined
    const accepted = `a whole number of milliseconds from ${leastMs} to ${LONGEST_TIMER_MS}`
    return { message: `${inspect(value, { depth: 0 })} is not a valid time`, accepted }
  }
}
