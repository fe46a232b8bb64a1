import { type StoreOutcome, StoreUnavailableError, textOf } from "../../ground/errors.ts"

/**
 * Returns what a server is called in messages, because an app may use several. `name` is the client's name for it, which has the
 * user and the password in it when the client's library has read a URL as a host or a path. They end at the last "@".
 */
export function titleOf(name: string): string {
  const at = name.lastIndexOf("@")
  const shown = at === -1 ? name : `…${name.slice(at)}`
  return name === "" ? REDIS : `${REDIS} at ${shown}`
}

const REDIS = "Redis"

/** Whatever a client rejects with, as what a store rejects with. */
export function failureOf(error: unknown, title = REDIS, outcome?: StoreOutcome): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error
  const message = error instanceof Error ? error.message || wordOf(error) : textOf(error)
  return new StoreUnavailableError(`${title} failed: ${message}`, { cause: error, outcome })
}

/** Of an error without a message: Node's for a name with several addresses, of which none can be reached, has a code alone. */
function wordOf({ code, name }: NodeJS.ErrnoException): string {
  return code ?? name
}

/**
 * Resolves when all changes were applied. Rejects otherwise, when all have ended: with an error whose outcome is
 * "not-applied" only when that is true of each of them.
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

/** What became of a server by the deadline: it could be asked, or not, or by no means, or turned away what it was asked, as replicas do. */
export type Reach = "connected" | "not connected" | "closed" | "a replica"

/** Returns the error for a deadline that has passed. It says where to look: at Redis, or at the connection to it. */
export function silent(
  reach: Reach = "connected",
  title = REDIS,
  outcome?: StoreOutcome,
): StoreUnavailableError {
  return new StoreUnavailableError(`${title} ${SILENCE[reach]}`, { kind: "timeout", outcome })
}

const SILENCE: Readonly<Record<Reach, string>> = {
  connected: "did not answer in time.",
  "not connected": "did not answer in time: its client has no connection.",
  closed: "did not answer in time: its client was never told to connect, or was closed.",
  "a replica": "has become a replica, and its client found no primary in time.",
}

/** Whether it is this error of Redis. They begin with a code, before which those of scripts had a place and a dash until Redis 7. */
export function isCode(error: unknown, code: string): boolean {
  // Our own errors may quote what a server said.
  if (!(error instanceof Error) || error instanceof StoreUnavailableError) return false
  return new RegExp(`(^|\\s)-?${code}\\b`).test(error.message)
}

/** What a message says of a key whose value no script of ours has written. */
export const NO_COUNTER =
  "does not contain a valid counter. Delete it, and find out what else writes such keys."

/** Characters of a policy's counter, after the hash tag of a key: `sl2:{7f}Zk3hX0pQ9vLm2TcY203.0.113.10`. */
const COUNTER_LENGTH = 16

/** A key as a message shows it: without the partition, which may be somebody's address and has no place in a log. */
export function shownKey(key: string): string {
  const head = key.slice(0, key.indexOf("}") + 1 + COUNTER_LENGTH)
  return head === key ? key : `${head}…`
}
