import { spawn } from "node:child_process"
import { startDynamoDB } from "./dynamodb.ts"
import { startRedis } from "./redis-server.ts"

// Runs a command with a Redis server and a local DynamoDB server, whose addresses are in REDIS_URL and
// DYNAMODB_ENDPOINT. If a variable is already set, its server is not started. Exits with the command's exit code:
// `tsx with-servers.ts node app.js`.

const [command, ...args] = process.argv.slice(2)
if (command === undefined) {
  console.error("Which command? tsx with-servers.ts COMMAND ARGUMENTS")
  process.exit(2)
}

const { REDIS_URL, DYNAMODB_ENDPOINT } = process.env
try {
  const redis = REDIS_URL === undefined ? await startRedis() : undefined
  const dynamoDB = DYNAMODB_ENDPOINT === undefined ? await startDynamoDB() : undefined
  const child = spawn(command, args, {
    stdio: "inherit",
    env: {
      ...process.env,
      ...(redis !== undefined && { REDIS_URL: `redis://${redis.host}:${redis.port}` }),
      ...(dynamoDB !== undefined && { DYNAMODB_ENDPOINT: dynamoDB.endpoint }),
    },
  })
  // Ignore Ctrl-C here, because a terminal also sends it to the command. The command then ends by itself, and needs
  // the servers until then.
  process.on("SIGINT", () => undefined)
  process.on("SIGTERM", () => child.kill("SIGTERM"))
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once("error", reject).once("close", (code) => resolve(code ?? 1))
  })
  await redis?.stop()
  await dynamoDB?.stop()
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
