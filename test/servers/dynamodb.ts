import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb"
import { startDynalite } from "./dynamodb-dynalite.ts"
import { dynoxideBinary, startDynoxide } from "./dynamodb-dynoxide.ts"

/** A program that speaks DynamoDB's protocol: in this process, or a static binary. */
export type DynamoDBEngine = "dynalite" | "dynoxide"

/** The engines, each with why it cannot run here, where it cannot. */
export const ENGINES: readonly { readonly engine: DynamoDBEngine; readonly missing?: string }[] = [
  { engine: "dynalite" },
  {
    engine: "dynoxide",
    ...(dynoxideBinary === undefined && { missing: "this platform has no binary of it" }),
  },
]

/** A DynamoDB of a test's own, with nothing in it. */
export interface DynamoDBServer {
  readonly host: string
  readonly port: number
  readonly endpoint: string
  /** A client of it, or of what stands before it (`endpoint`). The server destroys it when it stops. */
  client(config?: DynamoDBClientConfig): DynamoDBClient
  /** Stops the server and its clients. Stopping twice is fine. */
  stop(): Promise<void>
}

const HOST = "127.0.0.1"

/** The SDK would say in each test process that it will drop Node 20. */
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true"

/**
 * Starts a server of its own on a free port of 127.0.0.1; yields once it answers. It dies with this process. New tables
 * take so long to be created and deleted in dynalite, 0 ms by default, and a moment in dynoxide.
 */
export async function startDynamoDB(
  engine: DynamoDBEngine = "dynalite",
  {
    createTableMs = 0,
    deleteTableMs = 0,
  }: { readonly createTableMs?: number; readonly deleteTableMs?: number } = {},
): Promise<DynamoDBServer> {
  const running =
    engine === "dynalite"
      ? await startDynalite(HOST, { createTableMs, deleteTableMs })
      : await startDynoxide(HOST)
  const endpoint = `http://${HOST}:${running.port}`
  const clients: DynamoDBClient[] = []
  return {
    host: HOST,
    port: running.port,
    endpoint,
    client(config = {}) {
      const client = new DynamoDBClient({
        endpoint,
        region: "eu-central-1",
        credentials: { accessKeyId: "test", secretAccessKey: "test" },
        ...config,
      })
      clients.push(client)
      return client
    },
    async stop() {
      for (const client of clients.splice(0)) client.destroy()
      await running.stop()
    },
  }
}
