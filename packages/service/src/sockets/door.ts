import type { Overload } from "../bounds/in-flight.ts"

/** The names of the two servers of the decision service. */
export type Door = "grpc" | "http"

/** The code that read a gRPC call: the service's own code for plain calls ("plain"), or the grpc-js library. */
export type GrpcReader = "plain" | "grpc-js"

/** Callbacks for the events of the servers. */
export interface DoorListeners {
  /** Called with each error that is a fault of the service itself. The caller receives no details. */
  onFault(error: unknown, path: string): void
  /**
   * Called for each answered call, for metrics. Receives the path, the gRPC status code of the response, and the
   * milliseconds since the request arrived. `reader` is the code that read a gRPC call. If this callback is absent,
   * calls are not timed.
   */
  onAnswered?(door: Door, path: string, code: number, durationMs: number, reader?: GrpcReader): void
  /**
   * Called for each connection that is closed immediately, because the limit for all connections or for one address
   * is reached.
   */
  onRefusedConnection?(bound: ConnectionBound, peer: string): void
  /** Called for each connection that is ended because the headers of its first request did not arrive in time. */
  onLateConnection?(peer: string): void
  /** Called for each call whose token is missing or wrong. */
  onWrongToken?(path: string, peer: string): void
  /**
   * Called for each check of a gateway that cannot be decided, with the reason. Either the gateway is not one of
   * `trustedProxies`, or it does not describe the client's request. The reason contains no data from a client.
   */
  onInvalidCheck?(reason: string, peer: string): void
  /** Called for each call that is refused because a limit is reached. */
  onOverload?(what: Overload, peer: string): void
  /**
   * Called for each failed TLS handshake, with the address of the peer if it is known. The reason is a code of
   * OpenSSL or Node, such as `ERR_SSL_HTTP_REQUEST`, `CERT_HAS_EXPIRED` or `ERR_TLS_HANDSHAKE_TIMEOUT`. Not called
   * for peers that only connect and disconnect.
   */
  onFailedHandshake?(reason: string, peer: string | undefined): void
}

/** Bounds for the connections of a server. */
export interface ConnectionBounds {
  /** Maximum number of open connections. Further connections are closed immediately. Default 10,000. */
  readonly maxConnections?: number | undefined
  /**
   * Maximum number of open connections from one IPv4 address or one IPv6 /64. Further connections are closed
   * immediately. Default: a quarter of `maxConnections`.
   */
  readonly maxConnectionsPerPeer?: number | undefined
  /** Milliseconds from accepting a connection to the complete headers of its first request. */
  readonly arrivalMs: number
  /** Milliseconds after which a connection without calls is closed. Default 300,000. */
  readonly idleMs?: number | undefined
}

/** Bounds for the messages and connections of the callers of a server. */
export interface DoorBounds extends ConnectionBounds {
  /** Maximum bytes of a message, unless the call has its own limit. */
  readonly maxMessageBytes: number
  /**
   * Maximum bytes in memory for requests that are arriving. The same limit applies to unanswered requests. Default 64
   * MiB.
   */
  readonly maxUnfinishedBytes?: number | undefined
  /**
   * Maximum number of single calls in flight. The same limit applies separately to requests in batches, to requests
   * held by rules, and to calls whose request is still arriving. Further calls are refused with UNAVAILABLE, or
   * status 503. A batch of any length is accepted if nothing else is in flight.
   */
  readonly maxInFlight: number
  /** Milliseconds that a request may take to arrive. */
  readonly arrivalMs: number
}

/** A server of the service. */
export interface DoorServer {
  /** Starts listening. Resolves with the port. */
  listen(host: string, port: number): Promise<number>
  /** Stops accepting calls. Resolves when the calls in flight have been answered. */
  drain(): Promise<void>
  /** Ends all connections. */
  close(): void
}

/** The limit that refused a connection: the limit for all connections of a server, or the limit for one address. */
export type ConnectionBound = "all" | "peer"
