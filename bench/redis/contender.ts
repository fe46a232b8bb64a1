import { once } from "node:events"
import { Redis } from "ioredis"

/** Failed: no decision of Redis, such as one by the fallback. */
export type Outcome = "granted" | "refused" | "failed"

/** What decides one request of a client. */
export interface Contender<Decided = unknown> {
  count(key: string): Decided | Promise<Decided>
  judge(decided: Decided): Outcome
  /** Of what it rejects with. */
  judgeError(error: unknown): Outcome
}

export interface Setup {
  readonly port: number
  /** The limits on a request: units in so many milliseconds. */
  readonly limits: readonly { readonly limit: number; readonly windowMs: number }[]
}

/** A client that has connected, so that no contender counts by what it does before. */
export async function connect(port: number): Promise<Redis> {
  const client = new Redis({ host: "127.0.0.1", port })
  if (client.status !== "ready") await once(client, "ready")
  return client
}
