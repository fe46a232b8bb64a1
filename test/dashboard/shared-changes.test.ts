import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { afterAll, expect, it, onTestFinished } from "vitest"
import { forked, killInstances } from "../redis/instances.ts"
import { startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { send } from "./dashboard-servers.ts"
import type { PageProcess, Reported } from "./page-process.ts"

const PROCESS = fileURLToPath(new URL("./page-process.ts", import.meta.url))
const TOKEN = "a token of 24 characters"
const CLIENT = "192.0.2.7"

afterAll(killInstances)

/** Starts a process with a page. */
async function start(redisPort: number) {
  const how: PageProcess = { port: redisPort, hashSecret: "a secret of all processes", token: TOKEN }
  const child: ChildProcess = forked(PROCESS, how, {})
  const lines: Reported[] = []
  child.on("message", (reported: Reported) => "line" in reported && lines.push(reported))
  const [{ port }] = (await once(child, "message")) as [{ port: number }]
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json", "x-sluice-dashboard": "1", "x-sluice-token": TOKEN }
    return send(port, path, { method: "POST", headers, body: JSON.stringify(body) })
  }
  return {
    lines,
    find: async (key: string) => JSON.parse((await post("/find", { key })).body).clients,
    change: (action: string, { id = "", text = "" }, duration = "") =>
      post("/change", { action, service: "shop", rule: "calls", id, text, for: duration }),
    /** Resolves with the reason why a request of the client is refused. Empty if it is admitted. */
    async refusal(): Promise<string> {
      const reply = once(child, "message")
      child.send(CLIENT)
      return ((await reply) as [{ refusal: string }])[0].refusal
    },
  }
}

it("an operator blocks, unblocks and resets a client of one process by the page of another, unless Redis fails", async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const [one, other] = await Promise.all([start(redis.port), start(redis.port)])
  expect([await one.refusal(), await one.refusal()]).toEqual(["", "quota"])

  // Only the first process has refused the client.
  await until("the page shows the other process", async () => (await other.find(CLIENT)).length > 0)
  const [found] = await other.find(CLIENT)
  expect(found).toMatchObject({ refused: { refusals: 1 }, isShared: true, state: { limit: 1, remaining: 0 } })
  expect(found.key).toMatch(/^hash:/)
  expect((await one.find(found.key))[0].id).toBe(found.id)

  const blocked = await other.change("blocked", { id: found.id }, "1 hour")
  expect([blocked.status, JSON.parse(blocked.body).refusal]).toEqual([200, "blocked"])
  await until("the first process applies the block", async () => (await one.refusal()) === "blocked")
  expect((await one.find(CLIENT))[0].state.refusal).toBe("blocked")
  expect((await one.change("unblocked", { id: found.id })).status).toBe(200)
  await until("the second process ends the block", async () => (await other.refusal()) === "quota")
  expect((await one.change("reset", { id: found.id })).status).toBe(200)
  await until("the second process admits the client", async () => (await other.refusal()) === "")

  await redis.stop()
  const failed = await other.change("blocked", { id: found.id, text: CLIENT }, "1 hour")
  expect([failed.status, failed.body]).toEqual([
    ...[
      503,
      expect.stringMatching(
        /The client may not have been blocked. Repeat the change when the store responds\.$/,
      ),
    ],
  ])
  const client = { service: "shop", rule: "calls", client: CLIENT }
  expect(other.lines).toEqual([
    { line: "A client was blocked.", fields: { action: "blocked", ...client, for: "1 hour" } },
    {
      line: "The call failed, so the client may not have been blocked. See err for what to do.",
      fields: { action: "blocked", ...client, for: "1 hour", err: "StoreUnavailableError" },
    },
  ])
  expect((await other.find(CLIENT))[0].state).toMatchObject({ degraded: true })
})
