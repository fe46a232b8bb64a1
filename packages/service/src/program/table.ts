import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb"
import type { RuleRegistry, RuleSource } from "@sluice/rules"
import { rulesInTable } from "../registering/rules-in-table.ts"
import type { Settings } from "./settings/settings-table.ts"

/**
 * A logger without `info` and `error`. If a logger has these methods, the SDK formats each item as a log line, which
 * takes 80 ms for 1,000 rules.
 */
const QUIET = { trace() {}, debug() {}, warn() {} } as unknown as NonNullable<DynamoDBClientConfig["logger"]>

/** The settings of a table. The AWS SDK looks up the values that are undefined. */
export type TableSettings = Pick<Settings, "table" | "region" | "endpoint" | "createTable" | "pollMs">

/** The source of rules, and the registry that changes them. */
export interface OpenRules {
  readonly source: RuleSource
  /** Undefined if callers cannot change rules here. */
  readonly registry: RuleRegistry | undefined
  /** Whether a failure of the first load is a mistake that a retry cannot fix. */
  readonly mustLoadAtOnce: boolean
  close(): void | Promise<void>
}

/**
 * Timeout of an operation, including the SDK's three attempts. Without a timeout, a load that never ends would not be
 * reported.
 */
const TIMEOUT_MS = 10_000

/**
 * Opens the rules in a table, in which callers can also register rules. Rejects if the table must be created and its
 * creation fails.
 */
export async function openTable(
  tableName: string,
  { region, endpoint, createTable, pollMs }: TableSettings,
  env: Readonly<Record<string, string | undefined>>,
): Promise<OpenRules> {
  const client = new DynamoDBClient({
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && isOnThisMachine(endpoint) && localDefaults(region, env)),
    // Without `throwOnRequestTimeout`, the SDK only prints a warning when a request takes too long, and continues to
    // wait.
    logger: QUIET,
    requestHandler: { connectionTimeout: 3_000, requestTimeout: 3_000, throwOnRequestTimeout: true },
  })
  const { source, registry } = rulesInTable({ client, tableName, timeoutMs: TIMEOUT_MS, pollMs })
  const close = (): void => client.destroy()
  try {
    if (createTable) await registry.createTable()
    // Retry the first load, because a table that is unreachable now may be reachable soon.
    return { source, registry, mustLoadAtOnce: false, close }
  } catch (error) {
    close()
    throw error
  }
}

/**
 * Returns a region and credentials for a server on this machine. Such a server needs neither, but the SDK requires
 * both.
 */
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
