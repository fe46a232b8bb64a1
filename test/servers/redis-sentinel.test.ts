import { afterEach, expect, it } from "vitest"
import { isAlive } from "./processes.ts"
import { type RedisSentinel, startSentinel } from "./redis-sentinel.ts"
import { until } from "./until.ts"

let group: RedisSentinel | undefined
afterEach(() => group?.stop())

it("names the primary, and promotes the replica when the primary dies", async () => {
  const { primary, replica, sentinel, name, stop } = await startSentinel()
  group = { primary, replica, sentinel, name, stop }
  const pids = [primary, replica, sentinel].map((server) => server.pid)
  const named = (): Promise<unknown> => sentinel.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)
  expect(await named()).toEqual(["127.0.0.1", `${primary.port}`])
  expect(String(await replica.command("INFO", "replication"))).toContain("master_link_status:up")

  await primary.kill()
  await until("the replica is named", async () => [await named()].flat()[1] === `${replica.port}`)
  expect(await replica.command("SET", "written", "yes")).toBe("OK")

  await stop()
  expect(pids.filter(isAlive)).toEqual([])
})
