import { DynamoDBClient } from "@aws-sdk/client-dynamodb"
import { dynamoDBRegistry } from "@sluice/dynamodb"
import { Redis } from "ioredis"
import { serve } from "../demo/serve.ts"
import { RULES } from "../registered-rules/app.ts"
import { CREATE } from "./apps.ts"

// Serves an app of one framework until Ctrl-C, with rules from DynamoDB and counters in Redis. Prints commands to
// try.

const [framework = ""] = process.argv.slice(2)
const create = CREATE[framework]
const { REDIS_URL, DYNAMODB_ENDPOINT: endpoint, PORT } = process.env
if (create === undefined || REDIS_URL === undefined || endpoint === undefined) {
  console.error(`Run one of these, which also start Redis and DynamoDB:
${Object.keys(CREATE)
  .map((name) => `  npx -y pnpm@10.34.9 start:${name}`)
  .join("\n")}`)
  process.exit(2)
}

const service = "checkout"
const tableName = "sluice-example-rules"
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
const { app, limiter } = await create({ dynamoDB, redis, tableName, service })
const { url, close } = await serve(app, Number(PORT || 3000))

console.log(`
The app of ${framework} listens on ${url}. Each user may ask 5 times a minute, and all users 10 times a day.
Try, in another terminal:

  curl -i -H "x-user-id: ann" "${url}/orders?n=[1-6]"
  npx -y pnpm@10.34.9 exec sluice rules list --table ${tableName} --endpoint ${endpoint}

Ctrl-C ends it.`)
await new Promise<void>((resolve) => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve())
})
await close()
await limiter.close()
dynamoDB.destroy()
redis.disconnect()
