import { createServer, connect as open, type Server, type Socket } from "node:net"
import { freePort } from "./free-port.ts"

const HOST = "127.0.0.1"

/** The direction of traffic: from the clients, or from the server. */
export type Direction = "requests" | "replies"

/** Starts a proxy in front of a server. Resolves once it listens on a free port of 127.0.0.1. */
export async function startProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  for (let attempt = 1; ; attempt++) {
    const proxy = new TcpProxy(target, await freePort())
    try {
      await proxy.accept()
      return proxy
    } catch (error) {
      if (attempt === 5) throw error
    }
  }
}

/**
 * A proxy between clients and one server, controlled by a test. `startProxy` creates it. The proxy buffers held bytes
 * without a limit.
 */
export class TcpProxy {
  readonly host: string = HOST
  readonly port: number
  /** Delay in milliseconds for each direction, for bytes that arrive from now on. A round trip takes twice as long. */
  delayMs = 0
  /**
   * If true, requests reach the server but its replies are lost. Requests and replies then no longer match, so call
   * `cut` before you set this to false.
   */
  dropReplies = false
  /** The server for new connections. Open connections stay connected to their server. */
  target: { readonly host: string; readonly port: number }
  readonly #links = new Set<Link>()
  readonly #paused = new Set<Direction>()
  #listener: Server | undefined
  #rubbish: Uint8Array | undefined

  constructor(target: { readonly host: string; readonly port: number }, port: number) {
    this.target = target
    this.port = port
  }

  /** Returns the number of connected clients. */
  get connections(): number {
    return this.#links.size
  }

  /**
   * Stops forwarding bytes and connection ends in one or both directions, like a network partition. New connections
   * are still accepted, as if the server hangs.
   */
  pause(direction?: Direction): void {
    for (const one of directions(direction)) this.#paused.add(one)
  }

  /** Releases the held bytes, in order. */
  resume(direction?: Direction): void {
    for (const one of directions(direction)) this.#paused.delete(one)
    for (const link of this.#links) link.flow()
  }

  /** Resets all connections on both sides. Held bytes are lost. New connections are accepted. */
  cut(): void {
    for (const link of this.#links) link.reset()
  }

  /** Refuses new connections (ECONNREFUSED) until `accept`. Open connections stay open. */
  refuse(): void {
    this.#listener?.close()
    this.#listener = undefined
  }

  /** Accepts connections again, on the same port. Resolves once it listens. */
  async accept(): Promise<void> {
    if (this.#listener !== undefined) return
    const listener = createServer({ noDelay: true, allowHalfOpen: true }, (client) => this.#link(client))
    this.#listener = listener
    try {
      await new Promise<void>((resolve, reject) => {
        listener.once("error", reject)
        listener.listen(this.port, HOST, resolve)
      })
    } catch (error) {
      this.#listener = undefined
      throw error
    }
  }

  /** Responds to each chunk from a client with these bytes, without contacting the server. Undefined ends this. */
  answerWith(bytes: string | Uint8Array | undefined): void {
    this.#rubbish = typeof bytes === "string" ? Buffer.from(bytes) : bytes
  }

  /** Refuses new connections and resets the open connections. */
  close(): void {
    this.refuse()
    this.cut()
  }

  #link(client: Socket): void {
    const server = open({ ...this.target, noDelay: true, allowHalfOpen: true })
    const link: Link = new Link(client, server, {
      delayMs: () => this.delayMs,
      isPaused: (direction) => this.#paused.has(direction),
      rubbish: () => this.#rubbish,
      dropsReplies: () => this.dropReplies,
      closed: () => this.#links.delete(link),
    })
    this.#links.add(link)
  }
}

function directions(direction: Direction | undefined): readonly Direction[] {
  return direction === undefined ? ["requests", "replies"] : [direction]
}

interface Weather {
  delayMs(): number
  isPaused(direction: Direction): boolean
  rubbish(): Uint8Array | undefined
  dropsReplies(): boolean
  closed(): void
}

/** A client's connection through the proxy. */
class Link {
  readonly #client: Socket
  readonly #server: Socket
  readonly #weather: Weather
  readonly #lanes: readonly Lane[]

  constructor(client: Socket, server: Socket, weather: Weather) {
    this.#client = client
    this.#server = server
    this.#weather = weather
    const requests = new Lane(weather, "requests")
    const replies = new Lane(weather, "replies")
    this.#lanes = [requests, replies]
    client.on("data", (bytes) => {
      const rubbish = weather.rubbish()
      if (rubbish === undefined) requests.add(() => server.write(bytes))
      else replies.add(() => client.write(rubbish))
    })
    server.on("data", (bytes) => {
      if (!weather.dropsReplies() && weather.rubbish() === undefined) replies.add(() => client.write(bytes))
    })
    client.on("end", () => requests.add(() => server.end()))
    server.on("end", () => replies.add(() => client.end()))
    // Forward an error in order, after the bytes before it.
    client.on("error", () => requests.add(() => server.resetAndDestroy()))
    server.on("error", () => replies.add(() => client.resetAndDestroy()))
    for (const socket of [client, server]) {
      socket.on("close", () => {
        if (client.destroyed && server.destroyed) this.#close()
      })
    }
  }

  /** Sends everything that is due. */
  flow(): void {
    for (const lane of this.#lanes) lane.flow()
  }

  reset(): void {
    this.#client.resetAndDestroy()
    this.#server.resetAndDestroy()
    this.#close()
  }

  #close(): void {
    for (const lane of this.#lanes) lane.close()
    this.#weather.closed()
  }
}

/** One direction of a connection. Runs the added actions in order, each at its due time. */
class Lane {
  readonly #weather: Weather
  readonly #direction: Direction
  readonly #held: { readonly dueAt: number; readonly send: () => void }[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(weather: Weather, direction: Direction) {
    this.#weather = weather
    this.#direction = direction
  }

  add(send: () => void): void {
    this.#held.push({ dueAt: performance.now() + this.#weather.delayMs(), send })
    this.flow()
  }

  flow(): void {
    clearTimeout(this.#timer)
    for (;;) {
      const first = this.#held[0]
      if (first === undefined || this.#weather.isPaused(this.#direction)) return
      const waitMs = first.dueAt - performance.now()
      if (waitMs > 0) {
        // After a stall of this process, many timers fire at the same time. Deliver the bytes after them, so that a
        // caller whose timeout has passed notices that first.
        this.#timer = setTimeout(() => setImmediate(() => this.flow()), Math.ceil(waitMs))
        return
      }
      this.#held.shift()
      first.send()
    }
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#held.length = 0
  }
}
