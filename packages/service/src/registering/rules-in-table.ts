import {
  type DynamoDBRegistry,
  type DynamoDBRulesOptions,
  dynamoDBRegistry,
  dynamoDBRules,
} from "@sluice/core/dynamodb"
import type { RulesHome } from "./rules-home.ts"

/** Rules in a table, which the registry can create. */
export interface RulesInTable extends RulesHome {
  readonly registry: DynamoDBRegistry
}

/**
 * In a DynamoDB table, which any number of instances share. Who made the client destroys it.
 * @throws {@link InvalidOptionError} for wrong options.
 */
export function rulesInTable(options: DynamoDBRulesOptions): RulesInTable {
  const source = dynamoDBRules(options)
  const { pollMs: _pollMs, consistentRead: _consistentRead, ...table } = options
  return { source, registry: dynamoDBRegistry(table) }
}
