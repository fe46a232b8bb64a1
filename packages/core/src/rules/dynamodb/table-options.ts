import type { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import * as v from "valibot"
import { InvalidOptionError } from "../../ground/errors.ts"
import {
  hasMethods,
  integer,
  interval,
  memberProblems,
  type Schema,
  says,
  strict,
} from "../../ground/shape.ts"
import { locate, show } from "../../ground/show.ts"
import { DEFAULT_KEY, type KeyType, type TableKey } from "./table-key.ts"

/** A client that can send commands. The app may use another version of the SDK than Sluice. */
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
  /** Most items to read at a time. Default: 50, about 8 ms of work. Large items are read in smaller pages. */
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

const CLIENT = says("a DynamoDB client", "new DynamoDBClient({ … }) from @aws-sdk/client-dynamodb")
const TABLE = says(
  "the name of a table",
  'a name of 3 to 255 letters, digits, "_", "-" and ".", or the ARN of a table',
)
const KEY_NAME = says("the name of an attribute", "a string of 1 to 255 characters")
const PAGE = says("a valid number of items", "a whole number from 1 to 1000")

const tableShape = {
  client: v.custom((value) => hasMethods(value, "send"), CLIENT),
  tableName: v.pipe(v.string(TABLE), v.regex(/^(?:[\w.-]{3,255}|arn:[\w.:/-]{1,1024})$/, TABLE)),
  keyName: v.optional(v.pipe(v.string(KEY_NAME), v.minLength(1, KEY_NAME), v.maxLength(255, KEY_NAME))),
  keyType: v.optional(v.picklist(["S", "N"], says("a key type", '"S" for a string, "N" for a number'))),
  timeoutMs: interval,
  pageSize: v.optional(integer(PAGE, 1, 1000)),
}

/**
 * Checks the options of `noun` and fills in their defaults. `more` are members in addition to the table options. Throws
 * {@link InvalidOptionError} with every problem.
 */
export function parseTableOptions(
  noun: string,
  options: DynamoDBTableOptions,
  more: Readonly<Record<string, Schema>> = {},
): ParsedTableOptions {
  const problems = memberProblems(strict(`the options of ${noun}`, { ...tableShape, ...more }), options)
  if (problems.length === 0 && options.keyName !== undefined && options.keyType === undefined) {
    const message = `is missing, but keyName is ${show(options.keyName)}`
    problems.push({ path: ["keyType"], message, accepted: "both keyName and keyType, or neither" })
  }
  if (problems.length > 0) throw new InvalidOptionError(problems.map((problem) => locate("", problem)))
  const { client, tableName, keyName = DEFAULT_KEY.name, keyType, timeoutMs = 2_000, pageSize = 50 } = options
  const key = keyType === undefined ? undefined : { name: keyName, type: keyType }
  return { client, tableName, key, timeoutMs, pageSize }
}
