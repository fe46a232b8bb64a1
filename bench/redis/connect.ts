import { once } from "node:events"
import { Redis } from "ioredis"

/** A client that has connected, so that no contender counts by what it does before. */
export async function connect(port: number): Promise<Redis> {
  const client = new Redis({ host: "127.0.0.1", port })
  if (client.status !== "ready") await once(client, "ready")
  return client
}
