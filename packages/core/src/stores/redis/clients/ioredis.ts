import { outsideRequests } from "../../../ground/time.ts"
import { addressOf, type RedisCommands, type ServerAddress } from "../commands.ts"

/** What of ioredis' Command is used. */
export interface IoredisCommand {
  readonly promise: Promise<unknown>
  pipelineIndex?: number
}

/** What `Redis` and `Cluster` of ioredis 5 and 6 have in common, so far as it is used. */
interface IoredisClient {
  readonly status: string
  readonly options: { readonly keyPrefix?: unknown }
  connect(): Promise<unknown>
  sendCommand(command: IoredisCommand): unknown
  call(command: string, ...args: string[]): Promise<unknown>
  on(event: string, listener: (node: IoredisLike) => void): unknown
  off(event: string, listener: (node: IoredisLike) => void): unknown
}

/** A client of one server by ioredis, also one that finds its primary through Sentinel. */
export interface IoredisLike extends IoredisClient {
  readonly options: ServerAddress & { readonly keyPrefix?: unknown; readonly sentinels?: unknown }
  disconnect(reconnect?: boolean): void
}

/** A client of a cluster by ioredis. `slots` has for each slot its nodes as "host:port", the primary first. */
export interface IoredisClusterLike extends IoredisClient {
  readonly slots: readonly (readonly string[] | undefined)[]
  nodes(role: "all" | "master"): readonly IoredisLike[]
  refreshSlotsCache(callback: () => void): void
}

type CommandClass = new (
  name: string,
  args: string[],
  options: { replyEncoding: "utf8"; keyPrefix?: unknown },
) => IoredisCommand

/**
 * ioredis numbers the commands of a pipeline, and when a connection closes it rejects those of a pipeline whose head was
 * answered already (`abortIncompletePipelines`), before it puts the rest aside to send them again. A command with a
 * number that no position can have is rejected with them, and of a cluster it is not tried on another node either.
 */
const NEVER_SENT_AGAIN = -1

/** The port on one server by ioredis. Adds no listener for errors: those of the client are the app's. */
export function ioredisCommands(client: IoredisLike): RedisCommands {
  const { options } = client
  // Sentinels know where it is; the host that the options have then is ioredis' own default.
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
    onReady(listener) {
      const onReady = (): void => listener()
      client.on("ready", onReady)
      return () => void client.off("ready", onReady)
    },
    nodeOf: () => address,
    reconnect() {
      // In any other state it is looking already, and would wait longer.
      if (client.status === "ready") client.disconnect(true)
    },
  }
}

/** The calls, on `Redis` or `Cluster`, so made that none is ever sent again. */
export function callsOf(client: IoredisClient): Pick<RedisCommands, "evalsha" | "eval" | "del"> {
  const send = sender(client)
  return {
    evalsha: (sha, keys, args) => send("evalsha", [sha, String(keys.length), ...keys, ...args]),
    eval: (script, keys, args) => send("eval", [script, String(keys.length), ...keys, ...args]),
    del: (keys) => send("del", [...keys]),
  }
}

/** Connects a client of status "wait", which is another one from then on, so that no client is connected twice. */
export function connect(client: IoredisClient): void {
  // ioredis tells the failure to the app too, by an event or on the console, and tries again.
  outsideRequests(() => client.connect()).catch(() => undefined)
}

/** The prefix that the client puts before each key, as a text. */
export function prefixOf({ options }: IoredisClient): string {
  const { keyPrefix } = options
  return keyPrefix === undefined || keyPrefix === null ? "" : String(keyPrefix)
}

function sender(client: IoredisClient): (name: string, args: string[]) => Promise<unknown> {
  const Command = commandClassOf(client)
  // A client that is made differently: there the time limit that each call carries alone keeps it from counting late.
  if (Command === undefined) return (name, args) => client.call(name, ...args)
  const { keyPrefix } = client.options
  const options = { replyEncoding: "utf8" as const, ...(keyPrefix ? { keyPrefix } : {}) }
  return (name, args) => {
    const command = new Command(name, flat(args), options)
    command.pipelineIndex = NEVER_SENT_AGAIN
    return client.sendCommand(command) as Promise<unknown>
  }
}

/**
 * Has a list of texts say that it is flat, which the constructor of a command asks of any: V8 looks into each text of it
 * to find out, and takes longer for that than for all the rest of a call of 64 keys.
 */
function flat(texts: string[]): string[] {
  // Not to be seen by who goes through the arguments of a command, to print or to compare them.
  return Object.defineProperty(texts, "flat", { value: () => texts })
}

/**
 * The class Command of the very copy of ioredis that the app uses, which `sendCommand` needs: of a command that the
 * client's own method made for a stand-in that sends nothing. Undefined when the client is made differently.
 */
function commandClassOf(client: IoredisClient): CommandClass | undefined {
  // From the prototype: an app's own wrapper on the client itself would not send to the stand-in.
  const { evalsha } = Object.getPrototypeOf(client) as IoredisClient & { evalsha(): unknown }
  let made: Partial<IoredisCommand> | undefined
  const sendCommand = (command: IoredisCommand): unknown => {
    made = command
    return command.promise
  }
  try {
    const answer: unknown = Reflect.apply(evalsha, { options: {}, sendCommand }, ["0", "0"])
    // An app's own class may refuse the stand-in as well, which would end the process if nobody listened.
    Promise.resolve(answer).catch(() => undefined)
  } catch {
    // It refused at once.
  }
  const isCommand = made?.promise instanceof Promise && made.constructor !== Object
  return isCommand ? (made?.constructor as CommandClass) : undefined
}
