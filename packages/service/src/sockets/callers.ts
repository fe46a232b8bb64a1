import type { Server } from "node:net"
import { Arrivals, DEFAULT_MAX_UNFINISHED_BYTES } from "../bounds/arrivals.ts"
import { InFlight } from "../bounds/in-flight.ts"
import { Connections } from "./connections.ts"
import type { DoorBounds, DoorListeners } from "./door.ts"
import { listenOnEach, portOf } from "./listening.ts"

/** Tracks the callers of a server, including their connections, arriving requests and calls in flight. */
export class Callers {
  readonly connections: Connections
  readonly arrivals: Arrivals
  readonly inFlight: InFlight
  #listening: readonly Server[] = []

  constructor(isTls: boolean, bounds: DoorBounds, listeners: DoorListeners) {
    const { maxInFlight, arrivalMs, maxUnfinishedBytes: mostBytes = DEFAULT_MAX_UNFINISHED_BYTES } = bounds
    this.connections = new Connections(isTls, bounds, listeners)
    this.arrivals = new Arrivals({ mostArriving: maxInFlight, mostBytes, arrivalMs }, listeners)
    this.inFlight = new InFlight(maxInFlight, mostBytes, this.connections.peers, listeners)
  }

  /** Listens with one server for each address of a host. Resolves with the port, which is the same for all. */
  async listen(host: string, port: number, create: () => Server): Promise<number> {
    this.#listening = await listenOnEach(host, port, create)
    return portOf(this.#listening[0] as Server)
  }

  /** Stops accepting connections. Resolves when the last connection has closed. */
  async endListening(): Promise<void> {
    await Promise.all(this.#listening.map((each) => new Promise((resolve) => each.close(resolve))))
  }

  /** Ends all connections. */
  end(): void {
    this.connections.end()
    this.arrivals.close()
  }
}
