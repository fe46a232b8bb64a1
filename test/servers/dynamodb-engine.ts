/** A running server that speaks DynamoDB's protocol, whatever it runs on. */
export interface RunningEngine {
  readonly port: number
  /** Stopping twice is fine. */
  stop(): Promise<void>
}
