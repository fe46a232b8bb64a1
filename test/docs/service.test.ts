import { rulesInMemory, tokens } from "@sluice/service"
import { expect, it, onTestFinished } from "vitest"
import { type Started, startService, TWO_SERVICES } from "../service/started.ts"
import type { Block } from "./blocks.ts"
import { parseCurl } from "./shell/curl.ts"
import { commandLines } from "./shell/words.ts"
import { blocksTestedBy, expectShownJson } from "./shown.ts"

const SELF = "test/docs/service.test.ts"
const TOKEN = "the-token-of-service-1"

/** Sends the request of a block's curl line to this service. Resolves to the response. */
async function sendCurl(
  { text }: Block,
  { http }: Started,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const line = commandLines(text.replace("$TOKEN", TOKEN)).find(({ words }) => words[0] === "curl")
  const { urls, init } = parseCurl(line?.words ?? [])
  const response = await fetch((urls[0] ?? "").replace("http://127.0.0.1:8080", http), init)
  return { status: response.status, body: await response.json() }
}

async function start(...args: Parameters<typeof startService>): Promise<Started> {
  const started = await startService(...args)
  onTestFinished(() => started.stop())
  return started
}

it("the request in docs/service/start.md receives the decision that the page shows", async () => {
  const [block, response] = blocksTestedBy(SELF, "docs/service/start.md", 2) as [Block, Block]
  const { status, body } = await sendCurl(block, await start(TWO_SERVICES))
  expect(status).toBe(200)
  expectShownJson(JSON.parse(response.text), body)
})

it("the request in packages/service/README.md receives a decision", async () => {
  const [block] = blocksTestedBy(SELF, "packages/service/README.md", 1) as [Block]
  const { status, body } = await sendCurl(block, await start(TWO_SERVICES))
  expect(status).toBe(200)
  expect(body).toMatchObject({ shouldForward: true, policy: "per-user", remaining: "4" })
})

it("the request in docs/service/registering.md registers rules, and is rejected with an invalid unit", async () => {
  const [curl] = blocksTestedBy(SELF, "docs/service/registering.md", 1) as [Block]
  const service = await start(rulesInMemory(), { tokens: tokens({ "1": TOKEN }), isRegistrationOpen: false })
  expect(await sendCurl(curl, service)).toMatchObject({ status: 200, body: { version: "1" } })
  const wrong = await sendCurl({ ...curl, text: curl.text.replace('"minute"', '"month"') }, service)
  const violation = { field: "rules[0].rate.unit", description: expect.stringContaining("month") }
  expect(wrong).toMatchObject({
    status: 400,
    body: { code: "invalid_argument", details: [{ debug: { fieldViolations: [violation] } }] },
  })
})
