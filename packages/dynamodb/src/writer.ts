import {
  type AttributeValue,
  DeleteItemCommand,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from "@aws-sdk/client-dynamodb"
import { InvalidRuleError, RuleSourceError } from "@sluice/core"
import { show } from "@sluice/core/kit"
import type { ServiceMetadata } from "@sluice/core/rules"
import { type RegisteredRules, RuleConflictError, type StoredRule } from "@sluice/rules"
import { type Attributes, attributeOf, bytesOf } from "./attribute-values.ts"
import { type Condition, conflictMessage } from "./expected-version.ts"
import { type CallDescription, causeName, changedNothing, details } from "./failure.ts"
import { readRegistered, storedItem } from "./stored-item.ts"
import type { Table, TableItem } from "./table.ts"
import { keyFor } from "./table-key.ts"

/** A write, with the condition that the stored item must meet. */
export interface Write {
  readonly service: string
  readonly condition: Condition
  readonly signal: AbortSignal | undefined
}

/** A write of rules. */
export interface RulesWrite extends Write {
  readonly rules: readonly StoredRule[]
  /** If undefined, the stored metadata is kept. An object without members removes it. */
  readonly metadata: ServiceMetadata | undefined
}

/**
 * The outcome of a write. `found` is the item that is stored afterwards, and `error` is the reason why the item was
 * read.
 */
type WriteOutcome =
  | { readonly kind: "done"; readonly attributes: Attributes | undefined; readonly mayHaveRunTwice: boolean }
  | {
      /** "unknown" means that the write may have been carried out, or may still be carried out. */
      readonly kind: "refused" | "unknown"
      readonly error: RuleSourceError
      readonly found: TableItem | undefined
    }

/**
 * Replaces the stored rules and returns the new rules. Rejects as `register` does. If a write gets no response, reads
 * the item to find out the outcome.
 */
export async function putItem(table: Table, write: RulesWrite): Promise<RegisteredRules> {
  const { service, condition, signal } = write
  const what = table.what(service, "registered")
  const key = await table.key(what, signal)
  const Key = keyFor(key, service)
  if (Key === undefined) throw notANumber(table.name, service)
  const [version, rules] = [{ N: String(condition.next) }, attributeOf(write.rules)]
  const isKept = write.metadata === undefined
  const isRemoved = !isKept && Object.keys(write.metadata).length === 0
  const metadata = isKept || isRemoved ? undefined : attributeOf(write.metadata)
  const itemWith = (metadata: AttributeValue | undefined): TableItem => ({
    key,
    item: { ...Key, ...(metadata !== undefined && { metadata }), version, rules },
  })
  requireFitting(service, itemWith(metadata).item)
  const set = metadata === undefined ? "" : ", #metadata = :metadata"
  // Remove the older spelling `rule`, because otherwise the item would contain two lists of rules.
  const update = `SET #version = :next, #rules = :rules${set} REMOVE #rule${isRemoved ? ", #metadata" : ""}`
  const command = new UpdateItemCommand({
    TableName: table.name,
    Key,
    UpdateExpression: update,
    ...conditionInput(condition, key.name, update, {
      ":next": version,
      ":rules": rules,
      ...(metadata !== undefined && { ":metadata": metadata }),
    }),
    ReturnValues: isKept ? "ALL_NEW" : "NONE",
  })
  const outcome = await send(table, write, { what, action: "UpdateItem" }, command)
  const stored = outcome.kind === "done" ? outcome.attributes : outcome.found?.item
  const mine = itemWith(isKept ? stored?.metadata : metadata)
  if (
    outcome.kind !== "done" &&
    (outcome.kind === "refused" || !isSame(table.name, service, outcome.found, mine))
  ) {
    // If another writer has written the same version, this write was not carried out.
    const isLost = outcome.kind === "refused" || stored?.version?.N === version.N
    throw isLost ? await conflict(table, write, outcome) : unknown(outcome.error)
  }
  return await readRegistered(table.name, service, mine)
}

/** Removes the item. Returns true if the item existed. Rejects as `remove` does. */
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
    ...conditionInput(condition, key.name),
  })
  const outcome = await send(table, write, { what, action: "DeleteItem" }, command)
  // A retry finds nothing to remove if the first attempt removed the item and its response was lost.
  if (outcome.kind === "done") return outcome.attributes !== undefined || outcome.mayHaveRunTwice
  if (outcome.found === undefined) return outcome.kind === "unknown"
  throw outcome.kind === "unknown" ? unknown(outcome.error) : await conflict(table, write, outcome)
}

/**
 * Sends a write. If its condition was not met or its outcome is unknown, reads the stored item. Throws every other
 * error.
 */
async function send(
  table: Table,
  { service, signal }: Write,
  call: CallDescription,
  command: UpdateItemCommand | DeleteItemCommand,
): Promise<WriteOutcome> {
  const { middlewareStack } = command as UpdateItemCommand
  /**
   * The number of attempts that may have changed the table, because they were sent and not refused. The SDK retries
   * such attempts. If the condition then fails, the first attempt itself may be the cause.
   */
  let unanswered = 0
  const watch =
    <Request, Response>(next: (request: Request) => Promise<Response>) =>
    async (request: Request): Promise<Response> => {
      unanswered += 1
      try {
        const response = await next(request)
        unanswered -= 1
        return response
      } catch (error) {
        if (changedNothing(error)) unanswered -= 1
        throw error
      }
    }
  // Add the middleware as the last step inside the SDK's retries, so that every attempt passes through it.
  middlewareStack.add(watch, { step: "finalizeRequest", priority: "low", name: "sluiceAttempts" })
  try {
    const { Attributes: attributes } = await table.call({ ...call, signal }, (abortSignal) =>
      table.client.send(command as UpdateItemCommand, { abortSignal }),
    )
    return { kind: "done", attributes, mayHaveRunTwice: unanswered > 0 }
  } catch (error) {
    if (!(error instanceof RuleSourceError)) throw error
    if (isTooLarge(error)) throw tooLarge(service, undefined, error)
    const kind = unanswered > 0 ? "unknown" : "refused"
    if (kind === "refused" && causeName(error) !== "ConditionalCheckFailedException") throw error
    try {
      return { kind, error, found: await table.get(service, { consistent: true, signal }) }
    } catch (unread) {
      throw kind === "unknown" && unread instanceof RuleSourceError ? unknown(error) : unread
    }
  }
}

async function conflict(
  table: Table,
  { service, condition }: Write,
  { error, found }: Extract<WriteOutcome, { readonly found: unknown }>,
): Promise<RuleConflictError> {
  const there = found && (await readRegistered(table.name, service, found))
  const message = conflictMessage(table.name, service, condition, there)
  return new RuleConflictError(message, service, there, { cause: error })
}

/**
 * Returns the condition, and the names and values that the condition and the update use. DynamoDB rejects unused names
 * and values.
 */
function conditionInput(
  { expression, seen }: Condition,
  keyName: string,
  update = "",
  values: Attributes = {},
): Pick<UpdateItemCommandInput, "ConditionExpression" | `ExpressionAttribute${"Names" | "Values"}`> {
  const used = <Value>(all: Readonly<Record<string, Value>>): Record<string, Value> | undefined => {
    const entries = Object.entries(all).filter(([name]) => `${expression} ${update}`.includes(name))
    return entries.length === 0 ? undefined : Object.fromEntries(entries)
  }
  return {
    ConditionExpression: expression,
    ExpressionAttributeNames: used({ "#key": keyName, ...NAMES }),
    ExpressionAttributeValues: used(seen === undefined ? values : { ...values, ":seen": seen }),
  }
}

const NAMES = { "#version": "version", "#rules": "rules", "#rule": "rule", "#metadata": "metadata" }

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

/** The maximum size of a DynamoDB item in bytes, including the names of its attributes. */
const LARGEST_BYTES = 400 * 1024

/** Throws InvalidRuleError for an item that is too large for DynamoDB. */
function requireFitting(service: string, item: Attributes): void {
  const bytes = Object.entries(item).reduce((sum, [name, value]) => sum + bytesOf(name, value), 0)
  if (bytes > LARGEST_BYTES) throw tooLarge(service, bytes)
}

/**
 * Returns the error for an item that is too large. The size is unknown if attributes of other writers make it too
 * large.
 */
function tooLarge(service: string, bytes: number | undefined, cause?: unknown): InvalidRuleError {
  const size =
    bytes === undefined ? "and the other attributes of their item are" : `have ${bytes} bytes, which is`
  const message = `the rules of service ${JSON.stringify(service)} ${size} too large for a DynamoDB item`
  const accepted = `at most ${LARGEST_BYTES} bytes, with fewer or shorter rules`
  return new InvalidRuleError([{ path: "rules", message, accepted }], { cause })
}
