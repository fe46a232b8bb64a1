import type { RuleRegistry, RuleSource } from "@sluice/core"
import {
  type DynamoDBRegistry,
  type DynamoDBRulesOptions,
  dynamoDBRegistry,
  dynamoDBRules,
} from "@sluice/core/dynamodb"
import { memoryRegistry } from "./memory-registry.ts"

/** Where rules are kept: what a rule book reads them by, and what they are registered with. */
export interface RulesHome {
  readonly source: RuleSource
  readonly registry: RuleRegistry
}

/** In the memory of this process, which forgets them when it ends. */
export function rulesInMemory(): RulesHome {
  const registry = memoryRegistry()
  return { source: registry, registry }
}

/**
 * In a DynamoDB table, which any number of instances share. Who made the client destroys it. Throws InvalidOptionError.
 */
export function rulesInTable(options: DynamoDBRulesOptions): RulesHome & {
  readonly registry: DynamoDBRegistry
} {
  const { pollMs: _pollMs, consistentRead: _consistentRead, ...table } = options
  return { source: dynamoDBRules(options), registry: dynamoDBRegistry(table) }
}
