import { createServer, connect as open, type Server, type Socket } from "node:net"
import { freePort } from "./free-port.ts"

const HOST = "127.0.0.1"

/** A direction: what clients send, or what the server replies. */
export type Direction = "requests" | "replies"

/** Puts a proxy before a server; yields once it listens on a free port of 127.0.0.1. */
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

/** The network between clients and one server, at a test's mercy; made by `startProxy`. Holds bytes without bound. */
export class TcpProxy {
  readonly host: string = HOST
  readonly port: number
  /** Milliseconds by which each direction is late, for bytes that come from now on; a round trip takes twice as long. */
  delayMs = 0
  /**
   * When true, requests reach the server and what it replies is lost. The streams are out of step afterwards: `cut`
   * before letting replies through again.
   */
  dropReplies = false
  readonly #target: { readonly host: string; readonly port: number }
  readonly #links = new Set<Link>()
  readonly #paused = new Set<Direction>()
  #listener: Server | undefined
  #rubbish: Uint8Array | undefined

  constructor(target: { readonly host: string; readonly port: number }, port: number) {
    this.#target = target
    this.port = port
  }

  /** How many clients are connected. */
  get connections(): number {
    return this.#links.size
  }

  /**
   * Holds bytes, and the ends of connections, in one direction or both: a partition. New connections are accepted, as
   * they are by a server that hangs.
   */
  pause(direction?: Direction): void {
    for (const one of directions(direction)) this.#paused.add(one)
  }

  /** Lets the held bytes go, in order. */
  resume(direction?: Direction): void {
    for (const one of directions(direction)) this.#paused.delete(one)
    for (const link of this.#links) link.flow()
  }

  /** Resets all connections, on both sides; what is held is lost. New ones are accepted. */
  cut(): void {
    for (const link of this.#links) link.reset()
  }

  /** Refuses new connections (ECONNREFUSED) until `accept`; those that are open stay. */
  refuse(): void {
    this.#listener?.close()
    this.#listener = undefined
  }

  /** Accepts connections, on the same port as before; yields once it does. */
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

  /** Answers each chunk that a client sends with these bytes; the server sees and says nothing. Undefined ends it. */
  answerWith(bytes: string | Uint8Array | undefined): void {
    this.#rubbish = typeof bytes === "string" ? Buffer.from(bytes) : bytes
  }

  /** Refuses new connections and resets the open ones. */
  close(): void {
    this.refuse()
    this.cut()
  }

  #link(client: Socket): void {
    const server = open({ ...this.#target, noDelay: true, allowHalfOpen: true })
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

/** One client's connection through the proxy. */
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
    // A break travels like the bytes before it.
    client.on("error", () => requests.add(() => server.resetAndDestroy()))
    server.on("error", () => replies.add(() => client.resetAndDestroy()))
    for (const socket of [client, server]) {
      socket.on("close", () => {
        if (client.destroyed && server.destroyed) this.#close()
      })
    }
  }

  /** Sends what is due. */
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

/** One direction of a connection: does what was added in order, each in its time. */
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
        // After a stall of this process many timers ring at once: whoever waits for these bytes, and by the clock need wait no
        // longer, finds that out before they come.
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
