import type { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import * as v from "valibot"
import { InvalidOptionError } from "../../ground/errors.ts"
import { integer, memberProblems, type Schema, says, strict } from "../../ground/shape.ts"
import { locate, show } from "../../ground/show.ts"
import { LONGEST_TIMER_MS } from "../../ground/time.ts"
import { DEFAULT_KEY, type KeyType, type TableKey } from "./table-key.ts"

/** What a client must be able to do: send commands. The app's may be of another version of the SDK than ours. */
export type DynamoDBSender = Pick<DynamoDBClient, "send">

/** Where the rules are. */
export interface DynamoDBTableOptions {
  /**
   * A `DynamoDBClient` of @aws-sdk/client-dynamodb 3. It stays the app's, which gives it region, endpoint and credentials,
   * and destroys it.
   */
  readonly client: DynamoDBSender
  /** The table's name, or its ARN. */
  readonly tableName: string
  /** The attribute that is the table's key, for who may not call DescribeTable: default "service_id". Needs `keyType`. */
  readonly keyName?: string | undefined
  /** The type of the key: "S", a string, or "N", a number. When it is given, the table is not asked for its key. */
  readonly keyType?: KeyType | undefined
  /** Milliseconds for each call, with the SDK's own retries: default 2000. */
  readonly timeoutMs?: number | undefined
  /** Items that are read at a time, at most: default 50, some 8 ms of work. Fewer where they are large. */
  readonly pageSize?: number | undefined
}

/** The same with defaults. */
export interface ParsedTableOptions {
  readonly client: DynamoDBSender
  readonly tableName: string
  /** Absent where the table is to be asked. */
  readonly key: TableKey | undefined
  readonly timeoutMs: number
  readonly pageSize: number
}

const CLIENT = says("a DynamoDB client", "new DynamoDBClient({ … }) of @aws-sdk/client-dynamodb")
const TABLE = says(
  "the name of a table",
  'a name of 3 to 255 letters, digits, "_", "-" and ".", or the ARN of a table',
)
const KEY_NAME = says("the name of an attribute", "a text of 1 to 255 characters")
const PAGE = says("a number of items", "a whole number from 1 to 1000")

const INTERVAL = says("an interval", `a whole number of milliseconds from 1 to ${LONGEST_TIMER_MS}`)
/** An interval of time in milliseconds, or undefined for the default. */
export const interval: Schema = v.optional(integer(INTERVAL, 1, LONGEST_TIMER_MS))

const tableShape = {
  client: v.custom(
    (value) => typeof (value as Partial<DynamoDBSender> | null | undefined)?.send === "function",
    CLIENT,
  ),
  tableName: v.pipe(v.string(TABLE), v.regex(/^(?:[\w.-]{3,255}|arn:[\w.:/-]{1,1024})$/, TABLE)),
  keyName: v.optional(v.pipe(v.string(KEY_NAME), v.minLength(1, KEY_NAME), v.maxLength(255, KEY_NAME))),
  keyType: v.optional(
    v.picklist(["S", "N"], says("the type of a key", '"S" for a string, "N" for a number')),
  ),
  timeoutMs: interval,
  pageSize: v.optional(integer(PAGE, 1, 1000)),
}

/**
 * Checks the options of `noun`, which may have `more` members than those of the table, and fills in their defaults.
 * Throws {@link InvalidOptionError} with every problem.
 */
export function parseTableOptions(
  noun: string,
  options: DynamoDBTableOptions,
  more: Readonly<Record<string, Schema>> = {},
): ParsedTableOptions {
  const problems = memberProblems(strict(`the options of ${noun}`, { ...tableShape, ...more }), options)
  if (problems.length === 0 && options.keyName !== undefined && options.keyType === undefined) {
    const message = `is missing beside keyName ${show(options.keyName)}`
    problems.push({ path: ["keyType"], message, accepted: "keyName and keyType together, or neither" })
  }
  if (problems.length > 0) throw new InvalidOptionError(problems.map((problem) => locate("", problem)))
  const { client, tableName, keyName = DEFAULT_KEY.name, keyType, timeoutMs = 2_000, pageSize = 50 } = options
  const key = keyType === undefined ? undefined : { name: keyName, type: keyType }
  return { client, tableName, key, timeoutMs, pageSize }
}
