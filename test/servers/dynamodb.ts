import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb"
import { startDynalite } from "./dynamodb-dynalite.ts"
import { dynoxideBinary, startDynoxide } from "./dynamodb-dynoxide.ts"

/** A program with the DynamoDB protocol: a library in this process, or a static binary. */
export type DynamoDBEngine = "dynalite" | "dynoxide"

/** The engines, with the reason if an engine cannot run here. */
export const ENGINES: readonly { readonly engine: DynamoDBEngine; readonly missing?: string }[] = [
  { engine: "dynalite" },
  {
    engine: "dynoxide",
    ...(dynoxideBinary === undefined && { missing: "this platform has no binary of it" }),
  },
]

/** An empty DynamoDB server for one test. */
export interface DynamoDBServer {
  readonly host: string
  readonly port: number
  readonly endpoint: string
  /**
   * Creates a client of the server, or of a proxy in front of it (`endpoint`). The server destroys the client when it
   * stops.
   */
  client(config?: DynamoDBClientConfig): DynamoDBClient
  /** Stops the server and its clients. Idempotent. */
  stop(): Promise<void>
}

const HOST = "127.0.0.1"

/** Without this variable, the SDK warns in each test process that it will drop support for Node 20. */
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true"

/**
 * Starts a server on a free port of 127.0.0.1. Resolves once it responds. The server ends with this process. In
 * dynalite, creating and deleting a table takes the given time, by default 0 ms. In dynoxide, these operations take a
 * moment.
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
