import {
  type DynamoDBRegistry,
  type DynamoDBRulesOptions,
  dynamoDBRegistry,
  dynamoDBRules,
} from "@sluice/dynamodb"
import type { RulesHome } from "./rules-home.ts"

/** Rules in a DynamoDB table, which the registry can create. */
export interface RulesInTable extends RulesHome {
  readonly registry: DynamoDBRegistry
}

/**
 * Creates a home for rules in a DynamoDB table, which any number of instances can share. Closing the home does not
 * destroy the given client.
 * @throws {@link InvalidOptionError} for invalid options.
 */
export function rulesInTable(options: DynamoDBRulesOptions): RulesInTable {
  const source = dynamoDBRules(options)
  const { pollMs: _pollMs, consistentRead: _consistentRead, ...table } = options
  return { source, registry: dynamoDBRegistry(table) }
}
