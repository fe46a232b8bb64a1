/**
 * Rules in a DynamoDB table. Limiters read them through a rule source, and service owners write them through a
 * registry. docs/guides/dynamodb.md describes the table, the permissions and the costs.
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
