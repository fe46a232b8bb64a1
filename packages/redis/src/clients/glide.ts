import { StoreUnavailableError } from "@sluice/core"
import { outsideRequests } from "@sluice/core/kit"
import { addressOf, type RedisCommands, type ServerAddress } from "../commands.ts"
import { keySlot } from "./key-slot.ts"

/** A `GlideClient` or `GlideClusterClient` of Valkey GLIDE 2. */
export interface GlideLike {
  customCommand(args: string[], options?: { decoder?: number }): Promise<unknown>
  close(errorMessage?: string): void
  getStatistics(): object
}

/** Internal members of the client. They are not a public API, so any of them may be missing. */
interface GlideInside {
  readonly isClosed?: boolean
  readonly requestTimeout?: number
  readonly config?: { readonly addresses?: readonly ServerAddress[]; readonly readOnly?: boolean }
}

/** True if the app has created the client with `readOnly`. GLIDE then rejects every command that writes. */
export function isReadOnly(client: GlideLike): boolean {
  return (client as GlideLike & GlideInside).config?.readOnly === true
}

/** GLIDE's number for replies as strings. Otherwise the app's `defaultDecoder` could return bytes. */
const STRINGS = { decoder: 1 }

/** Time after which the map of a cluster's slots is read again while the map is in use. */
const MAP_MS = 2_000
/** Shortest time between two reads of the map. */
const READ_AGAIN_MS = 500

/** The codes of Redis' errors, by the names that GLIDE prints instead. */
const CODES: Readonly<Record<string, string>> = {
  BusyLoadingError: "LOADING",
  ClusterDown: "CLUSTERDOWN",
  CrossSlot: "CROSSSLOT",
  MasterDown: "MASTERDOWN",
  NoScriptError: "NOSCRIPT",
  PermissionDenied: "NOPERM",
  ReadOnly: "READONLY",
  ResponseError: "ERR",
  TryAgain: "TRYAGAIN",
}

/**
 * Returns the commands of a Valkey GLIDE client of one server. GLIDE does not show whether it is connected, so the
 * client is ready until it is closed. While GLIDE has no connection, it keeps a call for at most its `requestTimeout`,
 * and then discards the call. GLIDE sends no call twice.
 */
export function glideCommands(client: GlideLike): RedisCommands {
  const inside = client as GlideLike & GlideInside
  const [address] = inside.config?.addresses ?? []
  const name = address === undefined ? "" : addressOf(address)
  const isOpen = () => inside.isClosed !== true
  return {
    isCluster: false,
    isReady: isOpen,
    isOpen,
    ...callsOf(inside, () => undefined),
    nodeOf: () => name,
    // After QUIT, the server closes the connection, and GLIDE looks for the primary when it connects again.
    reconnect: () => void client.customCommand(["QUIT"]).catch(() => undefined),
  }
}

/**
 * Returns the commands of a Valkey GLIDE client of a cluster. GLIDE sends each call to the right node by itself, and
 * does not show which one. The store needs the node's address for its circuit breaker, so it reads the map of the slots.
 */
export function glideClusterCommands(client: GlideLike): RedisCommands {
  const inside = client as GlideLike & GlideInside
  const primaries = new Array<string | undefined>(16_384)
  const isOpen = () => inside.isClosed !== true
  let readAtMs = Number.NEGATIVE_INFINITY

  const readMap = (afterMs: number): void => {
    const nowMs = performance.now()
    if (nowMs - readAtMs < afterMs || !isOpen()) return
    readAtMs = nowMs
    // Ignore a failure, because another read follows. GLIDE chooses a random node for each read.
    outsideRequests(() => client.customCommand(["CLUSTER", "SLOTS"], STRINGS))
      .then((slots) => fill(primaries, slots))
      .catch(() => undefined)
  }
  const primaryOf = (key: string): string | undefined => {
    const primary = primaries[keySlot(key)]
    readMap(primary === undefined ? READ_AGAIN_MS : MAP_MS)
    return primary
  }

  return {
    isCluster: true,
    isReady: (key) => isOpen() && primaryOf(key) !== undefined,
    isOpen,
    ...callsOf(inside, () => readMap(READ_AGAIN_MS)),
    nodeOf: (key) => primaryOf(key) ?? "",
    reconnect: () => readMap(READ_AGAIN_MS),
  }
}

/** Copies the address of each slot's primary from a reply to CLUSTER SLOTS. */
function fill(primaries: (string | undefined)[], slots: unknown): void {
  primaries.fill(undefined)
  for (const [first, last, [host, port]] of slots as readonly [number, number, [string, number]][]) {
    primaries.fill(addressOf({ host, port }), first, last + 1)
  }
}

/** Returns functions that call commands of a client. `onFailure` is called before a call rejects. */
function callsOf(
  client: GlideLike & GlideInside,
  onFailure: () => void,
): Pick<RedisCommands, "evalsha" | "eval" | "del"> {
  const send = (args: string[]): Promise<unknown> =>
    client.customCommand(args, STRINGS).catch((error: unknown) => {
      onFailure()
      throw failureOf(error, client)
    })
  return {
    evalsha: (sha, keys, args) => send(["EVALSHA", sha, String(keys.length), ...keys, ...args]),
    eval: (script, keys, args) => send(["EVAL", script, String(keys.length), ...keys, ...args]),
    del: (keys) => send(["DEL", ...keys]),
  }
}

/** Returns GLIDE's error as the store expects it: a missed deadline as such, and a Redis error with its code. */
function failureOf(error: unknown, { requestTimeout }: GlideInside): unknown {
  if (!(error instanceof Error)) return error
  if (error.name === "TimeoutError") {
    // The server may still run the call.
    const message = `Redis did not respond within the ${requestTimeout} ms of the client's requestTimeout.`
    return new StoreUnavailableError(message, { kind: "timeout", outcome: "unknown", cause: error })
  }
  const [, name, text] =
    /^(?:An error was signalled by the server: - )?(\w+): (.*)$/s.exec(error.message) ?? []
  return name === undefined ? error : new Error(`${CODES[name] ?? name} ${text}`, { cause: error })
}
