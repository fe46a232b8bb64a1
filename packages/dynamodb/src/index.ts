/**
 * Rules in a DynamoDB table. Limiters read the rules through a rule source, and service owners write the rules
 * through a registry. docs/service/dynamodb.md describes the table, the permissions and the costs.
 * @module @sluice/dynamodb
 */

export {
  type DynamoDBRegistry,
  type DynamoDBRegistryOptions,
  dynamoDBRegistry,
} from "./dynamodb-registry.ts"
export { type DynamoDBRulesOptions, dynamoDBRules } from "./dynamodb-rules.ts"
export type { KeyType } from "./table-key.ts"
export type { DynamoDBSender, DynamoDBTableOptions } from "./table-options.ts"
