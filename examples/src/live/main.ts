import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { dynamoDBRegistry } from "@sluice/dynamodb"
import { Redis } from "ioredis"
import { RULES } from "../registered-rules/app.ts"
import { START } from "./apps.ts"

// Serves an app of one framework until Ctrl-C: rules from DynamoDB, counters in Redis. Prints commands to try.

const [framework = ""] = process.argv.slice(2)
const start = START[framework]
const { REDIS_URL, DYNAMODB_ENDPOINT: endpoint, PORT } = process.env
if (start === undefined || REDIS_URL === undefined || endpoint === undefined) {
  console.error(`Run one of these, which also start Redis and DynamoDB:
${Object.keys(START)
  .map((name) => `  npx -y pnpm@10.34.9 start:${name}`)
  .join("\n")}`)
  process.exit(2)
}

const service = "checkout"
const tableName = "sluice-example-rules"
const port = Number(PORT || 3000)
const dynamoDB = new DynamoDBClient({
  endpoint,
  region: "local",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
})
const redis = new Redis(REDIS_URL)
redis.on("error", (error) => console.error(error))
const registry = dynamoDBRegistry({ client: dynamoDB, tableName })
await registry.createTable()
await registry.register(service, RULES, { version: "any" })
const app = await start({ dynamoDB, redis, tableName, service }, port)

console.log(`
The app of ${framework} listens on http://localhost:${port}. Each user may ask 5 times a minute, and all users 10 times a day.
Try, in another terminal:

  curl -i -H "x-user-id: ann" "http://localhost:${port}/orders?n=[1-6]"
  npx -y pnpm@10.34.9 exec sluice rules list --table ${tableName} --endpoint ${endpoint}

Ctrl-C ends it.`)
await new Promise<void>((resolve) => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve())
})
await app.close()
await app.limiter.close()
dynamoDB.destroy()
redis.disconnect()
