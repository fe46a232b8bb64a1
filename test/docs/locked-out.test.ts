import { recordActivity } from "@sluice/dashboard"
import { rulesInMemory, tokens } from "@sluice/service"
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest"
import { useFolder } from "../cli/folder.ts"
import { sluice } from "../cli/in-process.ts"
import { startRedis } from "../servers/redis-server.ts"
import { type Started, startService } from "../service/started.ts"
import type { Block } from "./blocks.ts"
import { commandLines } from "./shell/words.ts"
import { blocksTestedBy, expectShown } from "./shown.ts"

const [commands, shown, curl, inRedis] = blocksTestedBy(
  "test/docs/locked-out.test.ts",
  "docs/production/locked-out.md",
  4,
) as [Block, Block, Block, Block]

const { file } = useFolder()
let started: Started
beforeAll(async () => {
  const home = rulesInMemory()
  await home.registry.register("checkout", [
    { name: "per-user", field: "user_id", limit: 5, window: "1 day", algorithm: "fixed-window" },
  ])
  started = await startService(home, {
    tokens: tokens({ checkout: "the-token" }),
    activity: recordActivity([]),
  })
})
afterAll(async () => started.stop())

async function post(method: string, body: string, token?: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${started.http}/sluice.v1.RateLimiter/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(token !== undefined && { authorization: token }) },
    body,
  })
  expect(response.status).toBe(200)
  return (await response.json()) as Record<string, unknown>
}

const REQUEST = JSON.stringify({ service: "checkout", request: '{"user_id":"ada"}' })
const decide = async () => (await post("ShouldForwardRequest", REQUEST)).shouldForward
const run = (words: readonly string[]) =>
  sluice(words.slice(1), { env: { SLUICE_URL: started.http, SLUICE_TOKEN: "the-token" } })

it("the documented sluice clients commands show, reset, block and unblock a client that is over its limit", async () => {
  for (let i = 0; i < 6; i++) await decide()
  const [first = "", ...lines] = shown.text.split("\n")
  const [line] = commandLines(first.replace("$ ", ""))
  const { out, err } = await run(line?.words ?? [])
  expectShown(lines.join("\n"), err + out)
  const admitted: unknown[] = []
  for (const { words } of commandLines(commands.text)) {
    if (words[0] !== "sluice") continue
    const { code, err } = await run(words)
    expect([words[2], code, err]).toEqual([words[2], 0, ""])
    admitted.push([words[2], await decide()])
  }
  expect(admitted).toEqual([
    ["top", false],
    ["show", false],
    ["reset", true],
    ["block", false],
    ["unblock", true],
  ])
})

it("the documented command with a rules file shows a client in the Redis of an app", async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const rules = { name: "per-user", field: "user_id", limit: 5, window: "1 day" }
  const path = file("rules.yaml", JSON.stringify({ service_id: "checkout", rules }))
  const [first = "", ...lines] = inRedis.text.split("\n")
  const [line] = commandLines(first.replace("$ ", "").replace("rules.yaml", path))
  const env = { REDIS_URL: `redis://127.0.0.1:${server.port}` }
  const { out, err } = await sluice(line?.words.slice(1) ?? [], { env })
  expectShown(lines.join("\n"), err + out)
})

it("the documented curl command blocks a client over HTTP", async () => {
  const [line] = commandLines(curl.text)
  const words = line?.words ?? []
  const [method = ""] = (words[1] ?? "").split("/").slice(-1)
  const authorization = words.find((word) => word.startsWith("authorization: "))?.slice(15)
  await post(method, words.at(-1) ?? "", authorization)
  expect(await decide()).toBe(false)
})
