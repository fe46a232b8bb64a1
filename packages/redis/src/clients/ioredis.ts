import { outsideRequests } from "@sluice/core/kit"
import { addressOf, type RedisCommands, type ServerAddress } from "../commands.ts"

/** The members of ioredis' Command class that the store uses. */
export interface IoredisCommand {
  readonly promise: Promise<unknown>
  pipelineIndex?: number
}

/** The members of ioredis 5 and 6's `Redis` and `Cluster` that the store uses. */
interface IoredisClient {
  readonly status: string
  readonly options: { readonly keyPrefix?: unknown }
  connect(): Promise<unknown>
  sendCommand(command: IoredisCommand): unknown
  call(command: string, ...args: string[]): Promise<unknown>
}

/** An ioredis client of one server, which may find its primary through Sentinel. */
export interface IoredisLike extends IoredisClient {
  readonly options: ServerAddress & { readonly keyPrefix?: unknown; readonly sentinels?: unknown }
  disconnect(reconnect?: boolean): void
}

/** An ioredis client of a cluster. `slots` contains the nodes of each slot as "host:port", with the primary first. */
export interface IoredisClusterLike extends IoredisClient {
  readonly slots: readonly (readonly string[] | undefined)[]
  nodes(role: "all" | "master"): readonly IoredisLike[]
  on(event: "+node", listener: (node: IoredisLike) => void): unknown
  refreshSlotsCache(callback: () => void): void
}

type CommandClass = new (
  name: string,
  args: string[],
  options: { replyEncoding: "utf8"; keyPrefix?: unknown },
) => IoredisCommand & { args: string[] }

/**
 * A pipeline position that no command can have. ioredis numbers the commands of a pipeline. When a connection closes,
 * ioredis first rejects the rest of each pipeline whose first commands have replies (`abortIncompletePipelines`).
 * Then ioredis stores all other commands and resends them later. A command with this position is rejected instead of
 * resent. In a cluster, ioredis does not retry the command on another node either.
 */
const NEVER_SENT_AGAIN = -1

/** Returns the commands of an ioredis client. Adds no error listener, because the app handles the client's errors. */
export function ioredisCommands(client: IoredisLike): RedisCommands {
  const { options } = client
  // With Sentinel, the host in the options is ioredis' default, not the server's address.
  const address = options.sentinels || !options.host ? "" : addressOf(options)
  return {
    isCluster: false,
    isReady: () => {
      if (client.status === "ready") return true
      if (client.status === "wait") connect(client)
      return false
    },
    isOpen: () => client.status !== "end",
    ...callsOf(client),
    nodeOf: () => address,
    reconnect() {
      // In any other state, the client is already connecting, and a disconnect would delay that.
      if (client.status === "ready") client.disconnect(true)
    },
  }
}

/** Returns functions that call commands of `Redis` or `Cluster`. No call is ever resent. */
export function callsOf(client: IoredisClient): Pick<RedisCommands, "evalsha" | "eval" | "del"> {
  const send = sender(client)
  return {
    evalsha: (sha, keys, args) => send("evalsha", [sha, String(keys.length), ...keys, ...args]),
    eval: (script, keys, args) => send("eval", [script, String(keys.length), ...keys, ...args]),
    del: (keys) => send("del", [...keys]),
  }
}

/** Connects a client whose status is "wait". Connecting changes the status, so no client is connected twice. */
export function connect(client: IoredisClient): void {
  // Ignore a failure, because ioredis also reports it to the app, by an event or on the console, and retries.
  outsideRequests(() => client.connect()).catch(() => undefined)
}

/** Returns the prefix that the client adds to each key, as a string. */
export function prefixOf({ options }: IoredisClient): string {
  const { keyPrefix } = options
  return keyPrefix === undefined || keyPrefix === null ? "" : String(keyPrefix)
}

function sender(client: IoredisClient): (name: string, args: string[]) => Promise<unknown> {
  const Command = commandClassOf(client)
  // If the client's internals are different, ioredis may resend a call. Then only the deadline in the call prevents
  // Redis from counting it late.
  if (Command === undefined) return (name, args) => client.call(name, ...args)
  const { keyPrefix } = client.options
  const options = { replyEncoding: "utf8" as const, ...(keyPrefix ? { keyPrefix } : {}) }
  return (name, args) => {
    // Set the arguments afterwards, because the constructor copies and checks each one, which takes longer than the
    // rest of a call of 64 keys. With a prefix, the constructor needs the arguments, because it adds the prefix.
    const command = new Command(name, keyPrefix ? args : [], options)
    if (!keyPrefix) command.args = args
    command.pipelineIndex = NEVER_SENT_AGAIN
    return client.sendCommand(command) as Promise<unknown>
  }
}

/**
 * Returns the Command class of the copy of ioredis that the app uses, because `sendCommand` needs a command of that
 * class. Finds the class by calling the client's method on a stand-in client, which sends nothing. Returns undefined
 * if the client's internals are different.
 */
function commandClassOf(client: IoredisClient): CommandClass | undefined {
  // Use the prototype's method, because a method that the app has replaced on the client would not use the stand-in.
  const { evalsha } = Object.getPrototypeOf(client) as IoredisClient & { evalsha(): unknown }
  let made: Partial<IoredisCommand> | undefined
  const sendCommand = (command: IoredisCommand): unknown => {
    made = command
    return command.promise
  }
  try {
    const answer: unknown = Reflect.apply(evalsha, { options: {}, sendCommand }, ["0", "0"])
    // Ignore a rejection by an app's own class, because an unhandled rejection would end the process.
    Promise.resolve(answer).catch(() => undefined)
  } catch {
    // The method threw.
  }
  const isCommand = made?.promise instanceof Promise && made.constructor !== Object
  return isCommand ? (made?.constructor as CommandClass) : undefined
}
