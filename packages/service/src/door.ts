/** The ways that calls come in by. */
export type Door = "grpc" | "http"

/** What reads a gRPC call: the service's own code for plain calls, or the library. */
export type GrpcReader = "plain" | "grpc-js"

/** What a door tells of itself. */
export interface DoorListeners {
  /**
   * Told of each call of a method when it is answered: the code of its answer, and how long that took from when its request had come.
   * `reader` says what has read a gRPC call. Absent: no clock is read.
   */
  onAnswered?: ((path: string, code: number, durationMs: number, reader?: GrpcReader) => void) | undefined
  /** Told of what is no StatusError: a fault of ours, of which its caller learns no more than that. */
  onFault(error: unknown, path: string): void
  /** Called for each connection that is closed at once: which bound was reached, that of all connections or that of its address. */
  onRefusedConnection(bound: ConnectionBound, peer: string): void
  /** Called for each connection that is ended because the headers of its first request did not come in time. */
  onLateConnection(peer: string): void
  /** Called for each call whose token is missing or wrong. */
  onWrongToken(path: string, peer: string): void
  /** Called for each request that is refused because there is too much of something. */
  onOverload(what: Overload, peer: string): void
  /**
   * Called for each failed TLS handshake, with a code such as `ERR_SSL_HTTP_REQUEST` or `ERR_TLS_HANDSHAKE_TIMEOUT` and the address of
   * the peer, if that is known.
   */
  onFailedHandshake(reason: string, peer: string | undefined): void
}

/**
 * What there is too much of: requests that are arriving, their bytes, calls in flight, or calls that a service's rules hold.
 */
export type Overload = "arriving" | "bytes" | "in-flight" | "held"

/** The bound that a refused connection has met: of all connections of a door, or of its address. */
export type ConnectionBound = "all" | "peer"
