/**
 * Rules in a DynamoDB table: the source that limiters read, and the registry that the owners of services write.
 * docs/guides/dynamodb.md has the table, permissions and costs.
 * @module @sluice/core/dynamodb
 */

export {
  type DynamoDBRegistry,
  type DynamoDBRegistryOptions,
  dynamoDBRegistry,
} from "./rules/dynamodb/dynamodb-registry.ts"
export { type DynamoDBRulesOptions, dynamoDBRules } from "./rules/dynamodb/dynamodb-rules.ts"
export type { KeyType } from "./rules/dynamodb/table-key.ts"
export type { DynamoDBSender, DynamoDBTableOptions } from "./rules/dynamodb/table-options.ts"
