import type { Server } from "node:net"
import { Arrivals, DEFAULT_MAX_UNFINISHED_BYTES } from "../bounds/arrivals.ts"
import { InFlight } from "../bounds/in-flight.ts"
import { Connections } from "./connections.ts"
import type { DoorBounds, DoorListeners } from "./door.ts"
import { listenOnEach, portOf } from "./listening.ts"

/** The callers of a server: their connections, their requests that arrive, and their calls in flight. */
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

  /** Listens with a server for each address of a host. Resolves with their port. */
  async listen(host: string, port: number, create: () => Server): Promise<number> {
    this.#listening = await listenOnEach(host, port, create)
    return portOf(this.#listening[0] as Server)
  }

  /** Accepts no more connections. Resolves when the last one has ended. */
  async endListening(): Promise<void> {
    await Promise.all(this.#listening.map((each) => new Promise((resolve) => each.close(resolve))))
  }

  /** Ends all connections. */
  end(): void {
    this.connections.end()
    this.arrivals.close()
  }
}
