import { registryContract, ruleSourceContract, type StoredRules } from "@sluice/contracts"
import { afterAll, describe, it } from "vitest"
import { dynamoDBRegistry } from "../../packages/dynamodb/src/dynamodb-registry.ts"
import { dynamoDBRules } from "../../packages/dynamodb/src/dynamodb-rules.ts"
import { runContract } from "../contracts/run-contract.ts"
import { type DynamoDBEngine, type DynamoDBServer, ENGINES, startDynamoDB } from "../servers/dynamodb.ts"
import { dropTable, emptyTable, itemOf, makeTable, putItem } from "./tables.ts"

const tableName = "rules"

for (const { engine, missing } of ENGINES) {
  if (missing === undefined) run(engine)
  else describe(`DynamoDB: ${engine}`, () => it.skip(`meets the contracts (not run: ${missing})`, () => {}))
}

function run(engine: DynamoDBEngine): void {
  const overNetwork = "it is read over the network"
  const polled = "it is polled, and the rule book asks again every pollMs"

  const rules = ruleSourceContract({
    async create(documents) {
      const server = await startDynamoDB(engine)
      const client = server.client()
      let isBroken = true
      const write = async (stored: readonly StoredRules[]): Promise<void> => {
        if (isBroken) await makeTable(client, tableName)
        isBroken = false
        // Replace the remaining documents in place, because a concurrent read of the source must always find them.
        for (const each of stored) await putItem(client, tableName, itemOf(each))
        await emptyTable(client, tableName, { but: stored.map(({ service_id }) => service_id) })
      }
      await write(documents)
      return {
        source: dynamoDBRules({ client, tableName, pollMs: 20 }),
        write,
        async breakDown() {
          isBroken = true
          await dropTable(client, tableName)
        },
        dispose: () => server.stop(),
      }
    },
    deviations: [
      { behaviour: "loads the same rules synchronously", reason: overNetwork },
      { behaviour: "throws from a synchronous load while the rules cannot be read", reason: overNetwork },
      { behaviour: "calls its watchers when the stored rules have changed", reason: polled },
      { behaviour: "stops calling a watcher that was removed, and still calls the others", reason: polled },
    ],
  })
  runContract(`rules in DynamoDB: ${engine}`, rules)

  let started: Promise<DynamoDBServer> | undefined
  afterAll(async () => (await started)?.stop())
  const registry = registryContract({
    async create() {
      const isFirst = started === undefined
      started ??= startDynamoDB(engine)
      const client = (await started).client()
      // A hundred concurrent writers may take a while on a busy machine.
      const registry = dynamoDBRegistry({ client, tableName, timeoutMs: 30_000 })
      if (isFirst) await registry.createTable()
      await emptyTable(client, tableName)
      return { registry, source: dynamoDBRules({ client, tableName }), async dispose() {} }
    },
  })
  runContract(`a registry in DynamoDB: ${engine}`, registry)
}
