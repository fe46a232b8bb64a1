import { once } from "node:events"
import { Redis } from "ioredis"

/** Resolves to a connected client, so that the time to connect is not measured. */
export async function connect(port: number): Promise<Redis> {
  const client = new Redis({ host: "127.0.0.1", port })
  if (client.status !== "ready") await once(client, "ready")
  return client
}
