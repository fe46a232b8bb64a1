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

/** The outcome of a write. `found` is what is stored afterwards, and `error` the reason why it was read. */
type WriteOutcome =
  | { readonly kind: "done"; readonly attributes: Attributes | undefined; readonly mayHaveRunTwice: boolean }
  | {
      /** "unknown": the write may have been carried out, or may be carried out later. */
      readonly kind: "refused" | "unknown"
      readonly error: RuleSourceError
      readonly found: TableItem | undefined
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
  const isKept = write.metadata === undefined
  const isRemoved = !isKept && Object.keys(write.metadata).length === 0
  const metadata = isKept || isRemoved ? undefined : attributeOf(write.metadata)
  const itemWith = (metadata: AttributeValue | undefined): TableItem => ({
    key,
    item: { ...Key, ...(metadata !== undefined && { metadata }), version, rules },
  })
  requireFitting(service, itemWith(metadata).item)
  const set = metadata === undefined ? "" : ", #metadata = :metadata"
  // An older spelling would store the rules twice.
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
    // Another writer has written the same version, so this write was not carried out.
    const isLost = outcome.kind === "refused" || stored?.version?.N === version.N
    throw isLost ? await conflict(table, write, outcome) : unknown(outcome.error)
  }
  return await readRegistered(table.name, service, mine)
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
    ...conditionInput(condition, key.name),
  })
  const outcome = await send(table, write, { what, action: "DeleteItem" }, command)
  // Nothing is left to remove if a first attempt has removed it and its response was lost.
  if (outcome.kind === "done") return outcome.attributes !== undefined || outcome.mayHaveRunTwice
  if (outcome.found === undefined) return outcome.kind === "unknown"
  throw outcome.kind === "unknown" ? unknown(outcome.error) : await conflict(table, write, outcome)
}

/**
 * Sends a write, and reads what is stored if its condition was not met or its outcome is unknown. Throws every other
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
   * Attempts that may have changed the table: they were sent, and not answered by a refusal. The SDK sends such a call
   * again. If the condition then fails, the first attempt itself may be the cause.
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
  // The last place before a request is sent, inside the SDK's retries, so that every attempt passes it.
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

/** Returns the condition, and the names and values that the condition and the update use. DynamoDB rejects others. */
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
