import { DeleteItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb"
import { InvalidRuleError, RuleSourceError } from "../../ground/errors.ts"
import { show } from "../../ground/show.ts"
import type { StoredRule } from "../documents/format-document.ts"
import { type RegisteredRules, RuleConflictError } from "../registry.ts"
import { WATCH_PLACE, watchAttempts } from "./attempts.ts"
import { type Attributes, attributeOf, bytesOf } from "./attribute-values.ts"
import { type Condition, conflictMessage } from "./expected-version.ts"
import { causeName, messageBehind } from "./failure.ts"
import { readRegistered, storedItem } from "./stored-item.ts"
import type { Table, TableItem } from "./table.ts"
import { keyFor } from "./table-key.ts"

/** A write, with the condition on what is stored. */
export interface Write {
  readonly service: string
  readonly condition: Condition
  readonly signal: AbortSignal | undefined
}

/** Writes items of a table, each on a condition, and finds out the outcome of an unanswered write. */
export interface Writer {
  /** Replaces the stored rules and returns the new ones. Rejects as `register` does. */
  put(write: Write & { readonly rules: readonly StoredRule[] }): Promise<RegisteredRules>
  /** Removes the item and returns whether there was one. Rejects as `remove` does. */
  remove(write: Write): Promise<boolean>
}

/** Creates a writer for this table. */
export function openWriter(table: Table): Writer {
  const find = (service: string, signal: AbortSignal | undefined): Promise<TableItem | undefined> =>
    table.get(service, { consistent: true, signal })
  const conflict = async (
    { service, condition }: Write,
    found: TableItem | undefined,
    cause: unknown,
  ): Promise<Error> => {
    const there = found && (await readRegistered(table.name, service, found))
    return new RuleConflictError(conflictMessage(table.name, service, condition, there), service, there, {
      cause,
    })
  }
  /** Returns the stored item after an unanswered write. */
  const findAfter = async (
    { service, signal }: Write,
    error: RuleSourceError,
  ): Promise<TableItem | undefined> => {
    try {
      return await find(service, signal)
    } catch (unread) {
      throw unread instanceof RuleSourceError ? unknown(error) : unread
    }
  }

  return {
    async put(write) {
      const { service, condition, signal } = write
      const what = table.what(service, "registered")
      const key = await table.key(what, signal)
      const Key = keyFor(key, service)
      if (Key === undefined) throw notANumber(table.name, service)
      const [version, rules] = [{ N: String(condition.next) }, attributeOf(write.rules)]
      const mine: TableItem = { key, item: { ...Key, version, rules } }
      requireFitting(service, mine.item)
      const command = new UpdateItemCommand({
        TableName: table.name,
        Key,
        // An older spelling would store the rules twice.
        UpdateExpression: "SET #version = :next, #rules = :rules REMOVE #rule",
        ...conditionInput(condition, key.name, { "#version": "version", "#rules": "rules", "#rule": "rule" }),
        ExpressionAttributeValues: {
          ":next": version,
          ":rules": rules,
          ...(condition.seen !== undefined && { ":seen": condition.seen }),
        },
      })
      const attempts = watchAttempts()
      command.middlewareStack.add(attempts.watch, WATCH_PLACE)
      try {
        await table.call({ what, action: "UpdateItem", signal }, (abortSignal) =>
          table.client.send(command, { abortSignal }),
        )
      } catch (error) {
        if (!(error instanceof RuleSourceError)) throw error
        if (isTooLarge(error)) throw tooLarge(service, undefined, error)
        const isRefused = causeName(error) === REFUSED
        if (!attempts.mayHaveRun) {
          throw isRefused ? await conflict(write, await find(service, signal), error) : error
        }
        const found = await findAfter(write, error)
        if (!isSame(table.name, service, found, mine)) {
          // Another writer has written the same version, so this write was not carried out.
          throw found?.item.version?.N === version.N ? await conflict(write, found, error) : unknown(error)
        }
      }
      return await readRegistered(table.name, service, mine)
    },

    async remove(write) {
      const { service, condition, signal } = write
      const what = table.what(service, "removed")
      const key = await table.key(what, signal)
      const Key = keyFor(key, service)
      if (Key === undefined) return false
      const command = new DeleteItemCommand({
        TableName: table.name,
        Key,
        ReturnValues: "ALL_OLD",
        ...conditionInput(condition, key.name, {}),
        ...(condition.seen !== undefined && { ExpressionAttributeValues: { ":seen": condition.seen } }),
      })
      const attempts = watchAttempts()
      command.middlewareStack.add(attempts.watch, WATCH_PLACE)
      try {
        const { Attributes: old } = await table.call({ what, action: "DeleteItem", signal }, (abortSignal) =>
          table.client.send(command, { abortSignal }),
        )
        // Nothing is left to remove if a first attempt has removed it and its answer was lost.
        return old !== undefined || attempts.mayHaveRun
      } catch (error) {
        if (!(error instanceof RuleSourceError)) throw error
        if (!attempts.mayHaveRun) {
          if (causeName(error) !== REFUSED) throw error
          const found = await find(service, signal)
          if (found === undefined) return false
          throw await conflict(write, found, error)
        }
        if ((await findAfter(write, error)) === undefined) return true
        throw unknown(error)
      }
    },
  }
}

const REFUSED = "ConditionalCheckFailedException"

function conditionInput(
  { expression = "" }: Condition,
  keyName: string,
  others: Readonly<Record<string, string>>,
): { ConditionExpression?: string; ExpressionAttributeNames?: Record<string, string> } {
  const used = Object.entries({ "#key": keyName, "#version": "version" }).filter(([name]) =>
    expression.includes(name),
  )
  // DynamoDB rejects names that the expression does not use.
  const names = { ...others, ...Object.fromEntries(used) }
  return {
    ...(expression !== "" && { ConditionExpression: expression }),
    ...(Object.keys(names).length > 0 && { ExpressionAttributeNames: names }),
  }
}

function isSame(tableName: string, service: string, found: TableItem | undefined, mine: TableItem): boolean {
  if (found === undefined) return false
  const stamp = ({ key, item }: TableItem): string => storedItem(tableName, key, service, item).stamp
  return stamp(found) === stamp(mine)
}

function isTooLarge(error: RuleSourceError): boolean {
  return causeName(error) === "ValidationException" && /\bsize\b/i.test(messageBehind(error))
}

function unknown(error: RuleSourceError): RuleSourceError {
  const message = `${error.message}. The write may have been carried out, or may be carried out later. Read the stored rules before you write again`
  return new RuleSourceError(message, { cause: error.cause })
}

function notANumber(tableName: string, service: string): InvalidRuleError {
  const message = `${show(service)} is not a number, but the key of DynamoDB table ${show(tableName)} is a number`
  return new InvalidRuleError([{ path: "service_id", message, accepted: 'a number such as "7"' }])
}

/** The largest item that DynamoDB stores, including the names of attributes. */
const LARGEST_BYTES = 400 * 1024

/** Throws InvalidRuleError for an item that is too large for DynamoDB. */
function requireFitting(service: string, item: Attributes): void {
  const bytes = Object.entries(item).reduce((sum, [name, value]) => sum + bytesOf(name, value), 0)
  if (bytes > LARGEST_BYTES) throw tooLarge(service, bytes)
}

/**
 * Returns the error of an item that is too large. The size is unknown if attributes of other writers make it too large.
 */
function tooLarge(service: string, bytes: number | undefined, cause?: unknown): InvalidRuleError {
  const size =
    bytes === undefined ? "and the other attributes of their item are" : `have ${bytes} bytes, which is`
  const message = `the rules of service ${JSON.stringify(service)} ${size} too large for a DynamoDB item`
  const accepted = `at most ${LARGEST_BYTES} bytes, with fewer or shorter rules`
  return new InvalidRuleError([{ path: "rules", message, accepted }], { cause })
}
