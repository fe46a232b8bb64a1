import { once } from "node:events"
import type { AddressInfo } from "node:net"
import type { ActivityOverview } from "@sluice/dashboard"
import type { Express } from "express"
import { expect, it, onTestFinished } from "vitest"
import type { Block } from "../docs/blocks.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { runTypeScript } from "../docs/typescript/run.ts"

const [code, json] = blocksTestedBy("test/dashboard/guide.test.ts", "docs/production/dashboard.md", 2) as [
  Block,
  Block,
]

async function start(app: Express): Promise<string> {
  const server = app.listen(0, "127.0.0.1")
  onTestFinished(() => void server.close())
  await once(server, "listening")
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

it("the guide's operations port lists the client as the guide shows it", async () => {
  const text = code.text.replace("\noperations.listen(9090)", "")
  expect(text).not.toBe(code.text)
  const { app, operations } = (await runTypeScript({ ...code, text })) as Record<
    "app" | "operations",
    Express
  >
  const [api, port] = [await start(app), await start(operations)]
  for (let i = 0; i < 5; i++) await fetch(api)
  const overview = (await (await fetch(`${port}/limited`)).json()) as ActivityOverview
  const [shown] = JSON.parse(json.text)
  const refused = overview.services[0]?.rules[0]?.refused
  expect(refused).toEqual([{ ...shown, lastMs: expect.any(Number), untilMs: expect.any(Number) }])
  expect(Object.keys(refused?.[0] ?? {}).sort()).toEqual(Object.keys(shown).sort())
})
