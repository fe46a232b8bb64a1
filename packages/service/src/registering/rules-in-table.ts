import {
  type DynamoDBRegistry,
  type DynamoDBRulesOptions,
  dynamoDBRegistry,
  dynamoDBRules,
} from "@sluice/core/dynamodb"
import type { RulesHome } from "./rules-home.ts"

/**
 * In a DynamoDB table, which any number of instances share. Who made the client destroys it. Throws InvalidOptionError.
 */
export function rulesInTable(options: DynamoDBRulesOptions): RulesHome & {
  readonly registry: DynamoDBRegistry
} {
  const { pollMs: _pollMs, consistentRead: _consistentRead, ...table } = options
  return { source: dynamoDBRules(options), registry: dynamoDBRegistry(table) }
}
