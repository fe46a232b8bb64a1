import {
  DescribeTableCommand,
  GetItemCommand,
  ScanCommand,
  type ScanCommandOutput,
} from "@aws-sdk/client-dynamodb"
import { beforeDeadline } from "@sluice/core/kit"
import { unlessAborted } from "@sluice/core/rules"
import type { Attributes } from "./attribute-values.ts"
import { type CallDescription, DeadlineError, details, failure } from "./failure.ts"
import { keyFor, keyOf, type TableKey } from "./table-key.ts"
import type { DynamoDBSender, ParsedTableOptions } from "./table-options.ts"

/** A call with its description and the signal that aborts it. */
export interface TableCall extends CallDescription {
  readonly signal: AbortSignal | undefined
}

/** How to read items. */
export interface ItemReadOptions {
  /** True if the read must return the latest writes, which doubles its cost. */
  readonly consistent: boolean
  readonly signal: AbortSignal | undefined
}

/**
 * One table of rules, read by calls with a timeout. Every failure is a RuleSourceError that names the table. The only
 * exception is an abort of the caller's own signal, which rejects with the signal's reason.
 */
export interface Table {
  readonly name: string
  readonly client: DynamoDBSender
  /** Returns the table's key. Unless the key was given, one DescribeTable looks it up. */
  key(what: string, signal: AbortSignal | undefined): Promise<TableKey>
  /**
   * Returns the item of a service with the table's key. Returns undefined if the table does not or cannot contain an
   * item for the service.
   */
  get(service: string, options: ItemReadOptions): Promise<TableItem | undefined>
  /** Returns one page of at most `limit` items, and the place where the next page begins. */
  scan(limit: number, start: Attributes | undefined, options: ItemReadOptions): Promise<ItemPage>
  /** Makes a call with the timeout. */
  call<T>(call: TableCall, run: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Returns the start of a failure message (`call.what`) about the rules of a service, or of all services. */
  what(service: string | undefined, verb: string): string
}

/** The item of a service. */
export interface TableItem {
  readonly key: TableKey
  readonly item: Attributes
}

/** One page of a table's items. */
export interface ItemPage {
  readonly items: readonly Attributes[]
  /** Where the next page begins; absent after the last page. */
  readonly next: Attributes | undefined
}

/** The reason to stop a call. Without a reason, each abort would create an error with a stack, which is slow. */
const NOT_AWAITED = new Error("Nobody waits for the call.")

const GIVE_KEY = "set the options keyName and keyType"

/** Returns the table for these options. Sends nothing before the first call. */
export function openTable({ client, tableName, key: given, timeoutMs }: ParsedTableOptions): Table {
  let learnt: Promise<TableKey> | undefined = given === undefined ? undefined : Promise.resolve(given)

  /** The SDK ignores its signal while it waits for credentials, so the deadline does not rely on the SDK. */
  const inTime = async <T>(
    signal: AbortSignal | undefined,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> => {
    signal?.throwIfAborted()
    const running = new AbortController()
    const late = (): Promise<never> => Promise.reject(new DeadlineError(timeoutMs))
    try {
      return await beforeDeadline(unlessAborted(run(running.signal), signal), timeoutMs, late)
    } catch (error) {
      running.abort(NOT_AWAITED)
      throw error
    }
  }

  /** Shares one request among concurrent calls. Does not cache a failure. */
  const learn = (): Promise<TableKey> => {
    const command = new DescribeTableCommand({ TableName: tableName })
    learnt ??= inTime(undefined, (abortSignal) => client.send(command, { abortSignal }))
      .then(({ Table = {} }) => keyOf(Table))
      .catch((error: unknown) => {
        learnt = undefined
        throw error
      })
    return learnt
  }

  const table: Table = {
    name: tableName,
    client,
    key: (what, signal) => table.call({ what, action: "DescribeTable", otherwise: GIVE_KEY, signal }, learn),
    async get(service, { consistent, signal }) {
      const what = table.what(service, "read")
      const key = await table.key(what, signal)
      const Key = keyFor(key, service)
      if (Key === undefined) return undefined
      const command = new GetItemCommand({ TableName: tableName, Key, ConsistentRead: consistent })
      const { Item } = await table.call({ what, action: "GetItem", signal }, (abortSignal) =>
        client.send(command, { abortSignal }),
      )
      return Item === undefined ? undefined : { key, item: Item }
    },
    async scan(limit, start, { consistent, signal }) {
      const command = new ScanCommand({
        TableName: tableName,
        Limit: limit,
        ConsistentRead: consistent,
        ...(start !== undefined && { ExclusiveStartKey: start }),
      })
      const call = { what: table.what(undefined, "listed"), action: "Scan", signal }
      const { Items = [], LastEvaluatedKey }: ScanCommandOutput = await table.call(call, (abortSignal) =>
        client.send(command, { abortSignal }),
      )
      return { items: Items, next: LastEvaluatedKey }
    },
    async call(call, run) {
      try {
        return await inTime(call.signal, run)
      } catch (error) {
        if (call.signal?.aborted && error === call.signal.reason) throw error
        // Look up the key again, because the table may have been recreated with another key.
        if (given === undefined && details(error).name === "ValidationException") learnt = undefined
        throw failure(call, error)
      }
    },
    what(service, verb) {
      const whose = service === undefined ? "The rules" : `The rules of service ${JSON.stringify(service)}`
      return `${whose} in DynamoDB table ${JSON.stringify(tableName)} cannot be ${verb}`
    },
  }
  return table
}
