import { requireService, startCall } from "@sluice/core/rules"
import {
  formatRuleDocumentInSlices,
  type RegistryCallOptions,
  RuleConflictError,
  type RuleRegistry,
} from "@sluice/rules"
import { createTable, type Wait } from "./create-table.ts"
import { conditionFor, conditionOf, removalOf } from "./expected-version.ts"
import { scanItems } from "./scan-items.ts"
import { readRegistered, registered } from "./stored-item.ts"
import { openTable } from "./table.ts"
import { type DynamoDBTableOptions, parseTableOptions } from "./table-options.ts"
import { putItem, removeItem } from "./writer.ts"

/** Options of `dynamoDBRegistry`. */
export interface DynamoDBRegistryOptions extends DynamoDBTableOptions {}

/** A registry in a DynamoDB table. */
export interface DynamoDBRegistry extends RuleRegistry {
  /**
   * Creates the table with on-demand billing and resolves when it is ready. An existing table is accepted if its key
   * is suitable. The key is a string named `service_id`, unless `keyName` and `keyType` are given. Rejects with
   * {@link RuleSourceError}.
   */
  createTable(options?: RegistryCallOptions): Promise<void>
}

/** Maximum number of attempts to write with version "any" while other writers cause conflicts. */
const MOST_TRIES = 50

/**
 * Creates a registry in the DynamoDB table that `dynamoDBRules` reads. Every write is conditional on the stored
 * version. A write is never repeated blindly. If its outcome is unknown, the item is read. If the outcome is still
 * unknown, the error says so. Attributes other than version, metadata and rules are left unchanged; `remove` removes
 * the whole item.
 *
 * Methods reject with {@link RuleSourceError}, which names the table, the service and what to do. They reject with the
 * signal's reason when it is aborted; a write may then have been carried out.
 * @example
 * ```ts
 * import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
 * import { dynamoDBRegistry } from "@sluice/dynamodb"
 *
 * const client = new DynamoDBClient({ region: "eu-central-1", maxAttempts: 2 })
 * const registry = dynamoDBRegistry({ client, tableName: "rules" })
 *
 * export async function raiseLimit(): Promise<void> {
 *   const { version } = (await registry.get("checkout")) ?? {}
 *   await registry.register("checkout", [{ field: "ip", limit: 200, window: "1 minute" }], { version })
 * }
 * ```
 * @throws {@link InvalidOptionError} for invalid options.
 */
export function dynamoDBRegistry(options: DynamoDBRegistryOptions): DynamoDBRegistry {
  return openRegistry(options)
}

/**
 * Creates a registry as `dynamoDBRegistry` does, with a function that waits between two polls of a new table, for
 * tests.
 */
export function openRegistry(options: DynamoDBRegistryOptions, wait?: Wait): DynamoDBRegistry {
  const tableOptions = parseTableOptions("dynamoDBRegistry", options)
  const table = openTable(tableOptions)
  return {
    async createTable(options) {
      await createTable(table, tableOptions.key, startCall(options).signal, wait)
    },
    async register(service, rules, options) {
      const { version, metadata: given, signal } = startCall(options)
      const document = await formatRuleDocumentInSlices(service, rules, undefined, given)
      const metadata = given === undefined ? undefined : (document.metadata ?? {})
      const write = { service, rules: document.rules, metadata, signal }
      if (version !== "any") return await putItem(table, { ...write, condition: conditionFor(version) })
      for (let tries = 1; ; tries++) {
        const condition = conditionOf(await table.get(service, { consistent: true, signal }))
        try {
          return await putItem(table, { ...write, condition })
        } catch (error) {
          if (!(error instanceof RuleConflictError) || tries === MOST_TRIES) throw error
        }
      }
    },
    async get(service, options) {
      requireService(service)
      const { signal } = startCall(options)
      const found = await table.get(service, { consistent: true, signal })
      return found && readRegistered(table.name, service, found)
    },
    async *list(options) {
      const { signal } = startCall(options)
      for await (const page of scanItems(table, tableOptions.pageSize, { consistent: true, signal })) {
        for (const { service, read } of page) yield registered(service, await read())
      }
    },
    async remove(service, options) {
      requireService(service)
      const { version, signal } = startCall(options)
      return await removeItem(table, { service, condition: removalOf(version), signal })
    },
  }
}
