import { DeleteItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb"
import { InvalidRuleError, RuleSourceError } from "@sluice/core"
import { show } from "@sluice/core/kit"
import type { ServiceMetadata } from "@sluice/core/rules"
import { type RegisteredRules, RuleConflictError, type StoredRule } from "@sluice/rules"
import { WATCH_PLACE, watchAttempts } from "./attempts.ts"
import { type Attributes, attributeOf, bytesOf } from "./attribute-values.ts"
import { type Condition, conflictMessage } from "./expected-version.ts"
import { causeName, details } from "./failure.ts"
import { readRegistered, storedItem } from "./stored-item.ts"
import type { Table, TableItem } from "./table.ts"
import { keyFor } from "./table-key.ts"

/** A write, with the condition on what is stored. */
export interface Write {
  readonly service: string
  readonly condition: Condition
  readonly signal: AbortSignal | undefined
}

/** A write of rules. */
export interface RulesWrite extends Write {
  readonly rules: readonly StoredRule[]
  /** Undefined keeps what is stored. Without members, removes it. */
  readonly metadata: ServiceMetadata | undefined
}

/**
 * Replaces the stored rules and returns the new ones. Rejects as `register` does. Finds out the outcome of an
 * unanswered write.
 */
export async function putItem(table: Table, write: RulesWrite): Promise<RegisteredRules> {
  const { service, condition, signal } = write
  const what = table.what(service, "registered")
  const key = await table.key(what, signal)
  const Key = keyFor(key, service)
  if (Key === undefined) throw notANumber(table.name, service)
  const [version, rules] = [{ N: String(condition.next) }, attributeOf(write.rules)]
  const metadata = metadataChange(write.metadata)
  const itemWith = (others: Attributes): TableItem => ({ key, item: { ...Key, ...others, version, rules } })
  let mine = itemWith(metadata.attributes)
  requireFitting(service, mine.item)
  const command = new UpdateItemCommand({
    TableName: table.name,
    Key,
    // An older spelling would store the rules twice.
    UpdateExpression: `SET #version = :next, #rules = :rules${metadata.set} REMOVE #rule${metadata.remove}`,
    ...conditionInput(condition, key.name, {
      ...{ "#version": "version", "#rules": "rules", "#rule": "rule" },
      ...metadata.names,
    }),
    ReturnValues: metadata.isKept ? "ALL_NEW" : "NONE",
    ExpressionAttributeValues: {
      ":next": version,
      ":rules": rules,
      ...metadata.values,
      ...(condition.seen !== undefined && { ":seen": condition.seen }),
    },
  })
  const attempts = watchAttempts()
  command.middlewareStack.add(attempts.watch, WATCH_PLACE)
  try {
    const { Attributes: stored } = await table.call({ what, action: "UpdateItem", signal }, (abortSignal) =>
      table.client.send(command, { abortSignal }),
    )
    if (metadata.isKept) mine = itemWith(keptMetadata(stored))
  } catch (error) {
    if (!(error instanceof RuleSourceError)) throw error
    if (isTooLarge(error)) throw tooLarge(service, undefined, error)
    if (!attempts.mayHaveRun) {
      throw isRefused(error) ? await conflict(table, write, await find(table, write), error) : error
    }
    const found = await findAfter(table, write, error)
    if (metadata.isKept) mine = itemWith(keptMetadata(found?.item))
    if (!isSame(table.name, service, found, mine)) {
      // Another writer has written the same version, so this write was not carried out.
      throw found?.item.version?.N === version.N ? await conflict(table, write, found, error) : unknown(error)
    }
  }
  return await readRegistered(table.name, service, mine)
}

/** The parts of a write that store, remove or keep the metadata. */
function metadataChange(metadata: ServiceMetadata | undefined) {
  const isKept = metadata === undefined
  const isRemoved = !isKept && Object.keys(metadata).length === 0
  const value = isKept || isRemoved ? undefined : attributeOf(metadata)
  return {
    isKept,
    set: value === undefined ? "" : ", #metadata = :metadata",
    remove: isRemoved ? ", #metadata" : "",
    names: isKept ? {} : { "#metadata": "metadata" },
    values: value === undefined ? {} : { ":metadata": value },
    attributes: value === undefined ? {} : { metadata: value },
  }
}

/** Returns the metadata of an item, as its attribute. */
function keptMetadata(item: Attributes | undefined): Attributes {
  return item?.metadata === undefined ? {} : { metadata: item.metadata }
}

/** Removes the item and returns whether there was one. Rejects as `remove` does. */
export async function removeItem(table: Table, write: Write): Promise<boolean> {
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
    const { mayHaveRun } = attempts
    if (!mayHaveRun && !isRefused(error)) throw error
    const found = await (mayHaveRun ? findAfter(table, write, error) : find(table, write))
    if (found === undefined) return mayHaveRun
    throw mayHaveRun ? unknown(error) : await conflict(table, write, found, error)
  }
}

function find(table: Table, { service, signal }: Write): Promise<TableItem | undefined> {
  return table.get(service, { consistent: true, signal })
}

/** Returns the stored item after an unanswered write. */
async function findAfter(table: Table, write: Write, error: RuleSourceError): Promise<TableItem | undefined> {
  try {
    return await find(table, write)
  } catch (unread) {
    throw unread instanceof RuleSourceError ? unknown(error) : unread
  }
}

async function conflict(
  table: Table,
  { service, condition }: Write,
  found: TableItem | undefined,
  cause: RuleSourceError,
): Promise<RuleConflictError> {
  const there = found && (await readRegistered(table.name, service, found))
  const message = conflictMessage(table.name, service, condition, there)
  return new RuleConflictError(message, service, there, { cause })
}

/** True if the condition of a write was not met. */
function isRefused(error: RuleSourceError): boolean {
  return causeName(error) === "ConditionalCheckFailedException"
}

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
  return causeName(error) === "ValidationException" && /\bsize\b/i.test(details(error.cause).message)
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
