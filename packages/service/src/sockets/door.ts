import type { OnOverload } from "../bounds/in-flight.ts"

/** The two servers of the decision service, by protocol. */
export type Door = "grpc" | "http"

/** The code that has read a gRPC call: the service's own for plain calls, or the library. */
export type GrpcReader = "plain" | "grpc-js"

/** Callbacks for the events of a server. */
export interface DoorListeners {
  /**
   * Called for each answered call, with the status code of the answer and the milliseconds since the request arrived.
   * `reader` is the code that has read a gRPC call. If absent, no clock is read.
   */
  onAnswered?: ((path: string, code: number, durationMs: number, reader?: GrpcReader) => void) | undefined
  /** Called with each error that is not a StatusError. It is a fault of the service, and the caller gets no details. */
  onFault(error: unknown, path: string): void
  /** Called for each connection that is closed at once, with the limit that was reached. */
  onRefusedConnection(bound: ConnectionBound, peer: string): void
  /** Called for each connection that is ended because the headers of its first request did not arrive in time. */
  onLateConnection(peer: string): void
  /** Called for each call whose token is missing or wrong. */
  onWrongToken(path: string, peer: string): void
  /**
   * Called for each check of a gateway that cannot be decided, with the reason: the gateway is not trusted, or does not
   * describe the client's request. The reason contains nothing that a client has sent.
   */
  onInvalidCheck(reason: string, peer: string): void
  /** Called for each request that is refused because a limit is reached. */
  readonly onOverload: OnOverload
  /**
   * Called for each failed TLS handshake, with the address of the peer if it is known. The reason is a code such as
   * `ERR_SSL_HTTP_REQUEST` or `ERR_TLS_HANDSHAKE_TIMEOUT`.
   */
  onFailedHandshake(reason: string, peer: string | undefined): void
}

/** The limit that refused a connection: for all connections of a server, or for its address. */
export type ConnectionBound = "all" | "peer"
