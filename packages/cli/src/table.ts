import type { RuleRegistry } from "@sluice/core"
import type { Io } from "./io.ts"
import { UsageError } from "./usage-error.ts"

/** Which table, and how to reach it; what is absent comes from where the AWS SDK looks for it. */
export interface TableOptions {
  readonly table: string
  readonly region?: string | undefined
  readonly endpoint?: string | undefined
}

/** What the program does with a table: `dynamoDBRegistry` does it. */
export interface Registry extends RuleRegistry {
  createTable(): Promise<void>
}

/** With the SDK's three attempts; a command that does not end tells nothing. */
const TIMEOUT_MS = 10_000

/**
 * Runs `use` with the registry in the table, and closes the connections after it. A server on this machine needs no
 * credentials: it gets some where the environment has none.
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
  // Loaded when they are needed: `check` and `--help` need no SDK.
  const { DynamoDBClient } = await import("@aws-sdk/client-dynamodb")
  const { dynamoDBRegistry } = await import("@sluice/core/dynamodb")
  const client = new DynamoDBClient({
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined ? { region } : isLocal && !hasRegion && { region: "local" }),
    ...(isLocal && !hasCredentials && { credentials: { accessKeyId: "local", secretAccessKey: "local" } }),
    // Unless it is told to throw the SDK only says on the console that it has waited too long, and waits on.
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

/** Throws UsageError for an endpoint that is no URL. */
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
