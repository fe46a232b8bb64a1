import type { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import type { Problem } from "@sluice/core"
import { interval, mustBe, type OptionCheck, problemAt, requireOptions, show } from "@sluice/core/kit"
import { DEFAULT_KEY, type KeyType, type TableKey } from "./table-key.ts"

/**
 * A client that can send commands. Declared as an interface, because the app may use another version of the SDK than
 * Sluice.
 */
export type DynamoDBSender = Pick<DynamoDBClient, "send">

/** Options of a table with rules. */
export interface DynamoDBTableOptions {
  /**
   * A `DynamoDBClient` of @aws-sdk/client-dynamodb 3. The app owns it: it sets region, endpoint and credentials, and
   * destroys the client.
   */
  readonly client: DynamoDBSender
  /** The table's name or ARN. */
  readonly tableName: string
  /**
   * The key attribute of the table, for apps that may not call DescribeTable. Default: "service_id". Requires
   * `keyType`.
   */
  readonly keyName?: string | undefined
  /** The type of the key: "S" for a string, "N" for a number. If it is given, DescribeTable is not called. */
  readonly keyType?: KeyType | undefined
  /** Timeout of each call in milliseconds, including the SDK's own retries. Default: 2000. */
  readonly timeoutMs?: number | undefined
  /**
   * Maximum number of items per page. Default: 50, which takes about 8 ms to process. Large items are read in smaller
   * pages.
   */
  readonly pageSize?: number | undefined
}

/** Options of a table, with defaults filled in. */
export interface ParsedTableOptions {
  readonly client: DynamoDBSender
  readonly tableName: string
  /** Absent if DescribeTable must look up the key. */
  readonly key: TableKey | undefined
  readonly timeoutMs: number
  readonly pageSize: number
}

const client = mustBe(
  "a DynamoDB client",
  "new DynamoDBClient({ … }) from @aws-sdk/client-dynamodb",
  (value) => typeof (value as Partial<DynamoDBSender> | null | undefined)?.send === "function",
)
const tableName = mustBe(
  "the name of a table",
  'a name of 3 to 255 letters, digits, "_", "-" and ".", or the ARN of a table',
  (value) => typeof value === "string" && /^(?:[\w.-]{3,255}|arn:[\w.:/-]{1,1024})$/.test(value),
)

const CHECKS: Readonly<Record<string, OptionCheck>> = {
  client,
  tableName,
  keyName: mustBe(
    "the name of an attribute",
    "a string of 1 to 255 characters",
    (value) => typeof value === "string" && value.length >= 1 && value.length <= 255,
  ),
  keyType: mustBe(
    "a key type",
    '"S" for a string, "N" for a number',
    (value) => value === "S" || value === "N",
  ),
  timeoutMs: interval,
  pageSize: mustBe(
    "a valid number of items",
    "a whole number from 1 to 1000",
    (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 1000,
  ),
}

/**
 * Checks the options of `title` and fills in their defaults. `more` contains checks of additional options. Throws
 * {@link InvalidOptionError} with every problem.
 */
export function parseTableOptions(
  title: string,
  options: DynamoDBTableOptions,
  more: Readonly<Record<string, OptionCheck>> = {},
): ParsedTableOptions {
  requireOptions(title, options, { ...CHECKS, ...more }, missing(options))
  const { keyName = DEFAULT_KEY.name, keyType, timeoutMs = 2_000, pageSize = 50 } = options
  const key = keyType === undefined ? undefined : { name: keyName, type: keyType }
  return { client: options.client, tableName: options.tableName, key, timeoutMs, pageSize }
}

/** Returns a problem for each missing option: a required option, or `keyType` if `keyName` is given. */
function missing(options: Partial<DynamoDBTableOptions> | null | undefined): Problem[] {
  if (typeof options !== "object" || options === null) return []
  const problems = [
    ...(options.client === undefined ? problemAt("client", undefined, client) : []),
    ...(options.tableName === undefined ? problemAt("tableName", undefined, tableName) : []),
  ]
  if (!options.keyName || options.keyType !== undefined) return problems
  const message = `is missing, but keyName is ${show(options.keyName)}`
  return [...problems, { path: "keyType", message, accepted: "both keyName and keyType, or neither" }]
}
