import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb"
import { rulesInTable } from "../registering/rules-in-table.ts"
import type { OpenRules } from "./rules.ts"
import type { TableSettings } from "./settings.ts"

/** Has no `info` and `error`: for a logger with these, the SDK prepares each item as a line of the log, 80 ms for 1,000 rules. */
const QUIET = { trace() {}, debug() {}, warn() {} } as unknown as NonNullable<DynamoDBClientConfig["logger"]>

/** With the SDK's three attempts; a load that does not end says nothing. */
const TIMEOUT_MS = 10_000

/** The rules in the table, which can be registered too. Rejects where the table was to be created and cannot be. */
export async function openTable(
  { name, region, endpoint, mayCreate, pollMs }: TableSettings,
  env: Readonly<Record<string, string | undefined>>,
): Promise<OpenRules> {
  const client = new DynamoDBClient({
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && isOnThisMachine(endpoint) && localDefaults(region, env)),
    // Unless it is told to throw the SDK only says on the console that it has waited too long, and waits on.
    logger: QUIET,
    requestHandler: { connectionTimeout: 3_000, requestTimeout: 3_000, throwOnRequestTimeout: true },
  })
  const { source, registry } = rulesInTable({ client, tableName: name, timeoutMs: TIMEOUT_MS, pollMs })
  const close = (): void => client.destroy()
  try {
    if (mayCreate) await registry.createTable()
    // A table that cannot be reached yet may be before long.
    return { source, registry, mustLoadAtOnce: false, close }
  } catch (error) {
    close()
    throw error
  }
}

/** A server on this machine needs no region and no credentials, and the SDK asks for both. */
function localDefaults(
  region: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): DynamoDBClientConfig {
  const has = (...names: readonly string[]) => names.some((name) => (env[name] ?? "") !== "")
  return {
    ...(region === undefined && !has("AWS_REGION", "AWS_PROFILE") && { region: "local" }),
    ...(!has("AWS_ACCESS_KEY_ID", "AWS_PROFILE") && {
      credentials: { accessKeyId: "local", secretAccessKey: "local" },
    }),
  }
}

function isOnThisMachine(endpoint: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(endpoint).hostname)
}
