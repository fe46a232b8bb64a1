import { spawn } from "node:child_process"
import { tmpdir } from "node:os"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import { startDynamoDB } from "../servers/dynamodb.ts"

// Runs the built program, as a user does. `pnpm test` builds it first. The test needs its own process, because Vitest
// itself would keep the process alive.

const SLUICE = fileURLToPath(new URL("../../packages/cli/bin/sluice.js", import.meta.url))

it("`sluice rules create-table` waits until the table is ready", async () => {
  const server = await startDynamoDB("dynalite", { createTableMs: 1_500 })
  const argv = ["rules", "create-table", "--table", "rules", "--endpoint", server.endpoint]
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: tmpdir(),
    AWS_REGION: "local",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  }
  const child = spawn(process.execPath, [SLUICE, ...argv], { env })
  let told = ""
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text: Buffer) => {
      told += text
    })
  }
  const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve))
  await server.stop()
  expect({ code, told }).toEqual({ code: 0, told: expect.stringContaining("rules") })
})
