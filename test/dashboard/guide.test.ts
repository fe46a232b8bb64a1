import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Limiter } from "@sluice/core"
import type { Activity, ActivityOverview, Dashboard } from "@sluice/dashboard"
import type { Express } from "express"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import type { Block } from "../docs/blocks.ts"
import { ROOT } from "../docs/documents.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { runTypeScript } from "../docs/typescript/run.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { serveBusyShop } from "./busy-shop.ts"
import { send } from "./dashboard-servers.ts"

const [code, change, audit, json, all] = blocksTestedBy(
  "test/dashboard/guide.test.ts",
  "docs/production/dashboard.md",
  5,
) as [Block, Block, Block, Block, Block]

const { client } = await redisForTests()

/** Runs the app of the guide, and returns its port. */
async function start(authorize?: string): Promise<number> {
  let text = code.text.replace("\napp.listen(3000)", "")
  expect(text).not.toBe(code.text)
  if (authorize !== undefined)
    text = text.replace("dashboard(limits.limiter)", `dashboard(limits.limiter, { authorize: ${authorize} })`)
  const { app } = (await runTypeScript({ ...code, text })) as { app: Express }
  const server = app.listen(0, "127.0.0.1")
  onTestFinished(() => void server.close())
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}

describe("the guide's picture", () => {
  it("shows the clients of a made-up shop", async () => {
    const shop = await serveBusyShop()
    onTestFinished(() => shop.stop())
    const overview = (await (await fetch(`${shop.url}overview.json`)).json()) as ActivityOverview
    const rule = overview.services[0]?.rules.find((each) => each.rule === "per-client")
    const most = rule?.refused[0]
    // If this fails, run `pnpm screenshots`, and correct the text of the picture.
    const first = `First: ${most?.key}, ${most?.refusals} times by ${rule?.rule}](`
    expect(readFileSync(`${ROOT}docs/production/dashboard.md`, "utf8")).toContain(first)
  })
})

describe("the guide's app", () => {
  it("lists the client as the guide shows it, and does not count requests for the page", async () => {
    const port = await start()
    for (let i = 0; i < 5; i++) await send(port, "/limits/")
    for (let i = 0; i < 5; i++) await send(port, "/")
    const overview: ActivityOverview = JSON.parse((await send(port, "/limits/overview.json")).body)
    const [shown] = JSON.parse(json.text)
    const refused = overview.services[0]?.rules[0]?.refused
    expect(refused).toEqual([
      {
        ...shown,
        key: expect.stringMatching(/^hash:[0-9a-f]{8}$/),
        lastMs: expect.any(Number),
        untilMs: expect.any(Number),
      },
    ])
    expect(Object.keys(refused?.[0] ?? {}).sort()).toEqual(Object.keys(shown).sort())
  })

  it("shows the page to those whom authorize allows", async () => {
    const port = await start('(req) => req.headers["x-user"] === "admin"')
    const statuses = []
    for (const headers of [{ "x-user": "admin" }, { "x-user": "other" }, {}] as Record<string, string>[])
      statuses.push((await send(port, "/limits/", { headers })).status)
    expect(statuses).toEqual([200, 403, 403])
  })
})

it("the guide's token lets an operator block a client, with the line that the guide shows", async () => {
  const token = "a token of 24 characters"
  vi.stubEnv("LIMITS_TOKEN", token)
  const lines: string[] = []
  const info = vi.spyOn(console, "info").mockImplementation((...line) => void lines.push(line.join(" ")))
  onTestFinished(() => {
    vi.unstubAllEnvs()
    info.mockRestore()
  })
  const { limits, page } = (await runTypeScript(change)) as { limits: { limiter: Limiter }; page: Dashboard }
  const server = createServer(page).listen(0, "127.0.0.1")
  onTestFinished(() => void server.close())
  await once(server, "listening")
  const client = { remoteAddress: "192.0.2.7" }
  for (let i = 0; i < 5; i++) await limits.limiter.decide(client)
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json", "x-sluice-dashboard": "1", "x-sluice-token": token }
    const { port } = server.address() as AddressInfo
    return JSON.parse((await send(port, path, { method: "POST", headers, body: JSON.stringify(body) })).body)
  }
  const [found] = (await post("/find", { key: "192.0.2.7" })).clients
  const { service, rule, id } = found
  await post("/change", { action: "blocked", service, rule, id, text: "", for: "1 hour" })
  expect((await limits.limiter.peek(client)).refusal).toBe("blocked")
  expect(lines).toEqual([audit.text.trim()])
})

it("the guide's second example returns the overview of all processes", async () => {
  const shown = await runTypeScript(all, { client })
  const { activity, limits } = shown as { activity: Activity; limits: { limiter: Limiter } }
  await limits.limiter.decide({ remoteAddress: "192.0.2.1" })
  expect(shown).toMatchObject({ services: [{ rules: [] }], missing: undefined })
  expect((await activity.overviewOfAll()).services[0]?.rules[0]?.rule).toBe("per-client")
  activity.stop()
})
