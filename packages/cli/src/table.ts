import type { RuleRegistry } from "@sluice/rules"
import type { Io } from "./io.ts"
import { UsageError } from "./usage-error.ts"

/** The table, and the region and endpoint of DynamoDB. For absent members, the AWS SDK uses its defaults. */
export interface TableOptions {
  readonly table: string
  readonly region?: string | undefined
  readonly endpoint?: string | undefined
}

/** The operations of the program on a table, as `dynamoDBRegistry` provides them. */
export interface Registry extends RuleRegistry {
  createTable(): Promise<void>
}

/** Timeout of a call, including the SDK's three attempts. Without a timeout, a command could hang without an error. */
const TIMEOUT_MS = 10_000

/**
 * Runs `use` with the registry in the table, and closes the connections afterwards. A server on this machine does not
 * need real credentials. Dummy credentials are used for it if the environment contains none.
 */
export async function withTable<T>(
  { table, region, endpoint }: TableOptions,
  { env }: Io,
  use: (registry: Registry) => Promise<T>,
  keyType?: "S" | "N",
): Promise<T> {
  const isLocal = isOnThisMachine(endpoint)
  const hasCredentials = ["AWS_ACCESS_KEY_ID", "AWS_PROFILE"].some((name) => (env[name] ?? "") !== "")
  const hasRegion = ["AWS_REGION", "AWS_PROFILE"].some((name) => (env[name] ?? "") !== "")
  // Loaded on demand, because `check` and `--help` do not need the SDK.
  const { DynamoDBClient } = await import("@aws-sdk/client-dynamodb")
  const { dynamoDBRegistry } = await import("@sluice/dynamodb")
  const client = new DynamoDBClient({
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined ? { region } : isLocal && !hasRegion && { region: "local" }),
    ...(isLocal && !hasCredentials && { credentials: { accessKeyId: "local", secretAccessKey: "local" } }),
    // Without `throwOnRequestTimeout` the SDK only logs the timeout to the console and keeps waiting.
    requestHandler: { connectionTimeout: 3_000, requestTimeout: 3_000, throwOnRequestTimeout: true },
  })
  try {
    return await use(
      dynamoDBRegistry({
        client,
        tableName: table,
        timeoutMs: TIMEOUT_MS,
        ...(keyType !== undefined && { keyType }),
      }),
    )
  } finally {
    client.destroy()
  }
}

/** True if the endpoint is on this machine. Throws UsageError for an endpoint that is not a URL. */
function isOnThisMachine(endpoint: string | undefined): boolean {
  if (endpoint === undefined) return false
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(
      `--endpoint ${JSON.stringify(endpoint)} is not a URL: give one such as http://localhost:8000`,
    )
  }
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)
}
