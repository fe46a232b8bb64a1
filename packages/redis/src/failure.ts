import { StoreUnavailableError } from "@sluice/core"
import { textOf } from "@sluice/core/kit"
import type { StoreOutcome } from "@sluice/core/stores"

/**
 * Returns a server's name for messages, because an app may use several servers. If the client's library has parsed a
 * URL as a host or a path, the name contains the user and the password. Removes everything up to the last "@", where
 * the password ends.
 */
export function titleOf(name: string): string {
  const at = name.lastIndexOf("@")
  const shown = at === -1 ? name : `…${name.slice(at)}`
  return name === "" ? REDIS : `${REDIS} at ${shown}`
}

const REDIS = "Redis"

/** Converts a client's error, or any other thrown value, to a StoreUnavailableError. */
export function failureOf(error: unknown, title = REDIS, outcome?: StoreOutcome): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message || wordOf(error) : textOf(error)
  return new StoreUnavailableError(`${title} failed: ${message}`, { cause: error, outcome })
}

/**
 * Returns a description of an error without a message. For example, Node.js creates an error with only a code when no
 * address of a host name can be reached.
 */
function wordOf({ code, name }: NodeJS.ErrnoException): string {
  return code ?? name
}

/**
 * Resolves when all changes have been applied. If a change fails, rejects after all changes have ended. The error's
 * outcome is "not-applied" only if no change was applied.
 */
export async function allApplied(changes: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(changes)
  const failures = results
    .filter((result) => result.status === "rejected")
    .map(({ reason }) => failureOf(reason))
  const [first] = failures
  if (first === undefined) return
  const isWhole = failures.length === changes.length
  const unknown = failures.find(({ outcome }) => outcome === "unknown")
  if (unknown !== undefined || isWhole) throw unknown ?? first
  const { message, kind } = first
  throw new StoreUnavailableError(message, { kind, outcome: "unknown", cause: first })
}

/**
 * The state of a server's connection at the deadline. "closed" means that the client does not even try to connect. "a
 * replica" means that the server rejected the calls, because it is a replica.
 */
export type Reach = "connected" | "not connected" | "closed" | "a replica"

/**
 * Returns the error for a missed deadline. The message shows whether Redis or the connection to it is the likely cause.
 */
export function silent(
  reach: Reach = "connected",
  title = REDIS,
  outcome?: StoreOutcome,
): StoreUnavailableError {
  return new StoreUnavailableError(`${title} ${SILENCE[reach]}`, { kind: "timeout", outcome })
}

const SILENCE: Readonly<Record<Reach, string>> = {
  connected: "did not respond in time.",
  "not connected": "did not respond in time, because its client has no connection.",
  closed: "did not respond in time, because its client never connected or was closed.",
  "a replica": "is a replica, and its client did not find the primary in time.",
}

/**
 * True if an error is the Redis error with this code. Redis errors begin with their code. Before Redis 7, a position
 * and a dash precede the code in errors that scripts throw.
 */
export function isCode(error: unknown, code: string): boolean {
  // A StoreUnavailableError is not a Redis error, although its message may quote a server's reply.
  if (!(error instanceof Error) || error instanceof StoreUnavailableError) return false
  return new RegExp(`(^|\\s)-?${code}\\b`).test(error.message)
}

/**
 * Returns the error for a key whose value these scripts did not write. `shown` is the name of the key in the message.
 */
export function noCounter(shown: string): StoreUnavailableError {
  const what = "does not contain a valid counter. Delete it, and find out what else writes such keys."
  return new StoreUnavailableError(`The Redis key ${shown} ${what}`, { kind: "invalid-answer" })
}

/** Length of a policy's counter, which follows the hash tag in a key: `sl2:{7f}Zk3hX0pQ9vLm2TcY203.0.113.10`. */
const COUNTER_LENGTH = 16

/**
 * Returns a key without its partition, for messages. A partition must not be logged, because it may be a client's
 * address.
 */
export function shownKey(key: string): string {
  const head = key.slice(0, key.indexOf("}") + 1 + COUNTER_LENGTH)
  return head === key ? key : `${head}…`
}
