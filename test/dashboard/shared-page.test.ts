import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { createLimiter } from "@sluice/core"
import { type ActivityOverview, dashboard } from "@sluice/dashboard"
import { redisActivity } from "@sluice/redis"
import { Redis } from "ioredis"
import { expect, it, onTestFinished } from "vitest"
import { startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"

/** Starts a process of a service, with the page, that has refused a client. Returns the address of the page. */
async function startProcess(port: number, remoteAddress: string): Promise<string> {
  const client = new Redis(port, { retryStrategy: () => 20 })
  client.on("error", () => undefined)
  const limiter = createLimiter({ service: "shop", name: "calls", limit: 1, window: "1 hour" })
  const page = dashboard(limiter, { keys: "shown", shared: redisActivity({ client }) })
  const http = createServer(page).listen(0, "127.0.0.1")
  onTestFinished(async () => {
    page.close()
    http.close()
    client.disconnect()
  })
  await once(http, "listening")
  for (let i = 0; i < 3; i++) await limiter.decide({ remoteAddress })
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`
}

async function overviewAt(page: string): Promise<ActivityOverview> {
  return (await (await fetch(`${page}/overview.json`)).json()) as ActivityOverview
}

it("the page shows and finds the clients of all processes, and says when it cannot read the others", async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const [page] = [await startProcess(server.port, "192.0.2.1"), await startProcess(server.port, "192.0.2.2")]
  const keysAt = async () => {
    const [service] = (await overviewAt(page)).services
    return service?.rules[0]?.refused.map(({ key, refusals }) => `${key} ${refusals}`).sort()
  }
  // The first page has only this process.
  expect(await keysAt()).toEqual(["192.0.2.1 2"])
  await until("the other process is shown", async () => (await keysAt())?.length === 2)
  expect(await keysAt()).toEqual(["192.0.2.1 2", "192.0.2.2 2"])
  const found = await fetch(`${page}/find`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-sluice-dashboard": "1" },
    body: JSON.stringify({ key: "192.0.2.2" }),
  })
  expect(await found.json()).toMatchObject({ clients: [{ rule: "calls", refused: { refusals: 2 } }] })
  await server.stop()
  await until("the others are missing", async () => (await overviewAt(page)).missing !== undefined)
  const { missing, services } = await overviewAt(page)
  expect(missing).toContain("Only this process is included.")
  expect(services[0]?.instances).toHaveLength(1)
})
