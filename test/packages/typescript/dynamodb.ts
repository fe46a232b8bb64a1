import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { createLimiter, type Limiter } from "@sluice/core"
import { type DynamoDBRulesOptions, dynamoDBRegistry, dynamoDBRules } from "@sluice/dynamodb"
import type { LiveSource, RuleRegistry } from "@sluice/rules"

const table: DynamoDBRulesOptions = { client: new DynamoDBClient({}), tableName: "rules", pollMs: 10_000 }
const source: LiveSource = dynamoDBRules(table)

export const limiter: Limiter = createLimiter({ rules: source, onRulesMissing: "allow" })
export const registry: RuleRegistry = dynamoDBRegistry({ client: table.client, tableName: "rules" })

// @ts-expect-error this is not a client for DynamoDB
dynamoDBRules({ client: {}, tableName: "rules" })
// @ts-expect-error the name of the table is missing
dynamoDBRegistry({ client: table.client })
