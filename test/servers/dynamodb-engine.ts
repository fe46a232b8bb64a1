/** A running server with the DynamoDB protocol, from any engine. */
export interface RunningEngine {
  readonly port: number
  /** Stops the server. Idempotent. */
  stop(): Promise<void>
}
