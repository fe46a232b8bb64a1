import { afterEach, beforeEach, expect, it } from "vitest"
import { redisForTests } from "./redis-for-tests.ts"
import { RespConnection } from "./resp.ts"
import { startProxy, type TcpProxy } from "./tcp-proxy.ts"
import { until } from "./until.ts"

const { server } = await redisForTests()
let proxy: TcpProxy
let client: RespConnection
beforeEach(async () => {
  proxy = await startProxy(server)
  client = new RespConnection(proxy.host, proxy.port)
  await server.command("FLUSHALL")
})
afterEach(() => {
  client.close()
  proxy.close()
})

async function stillWaiting(reply: Promise<unknown>): Promise<boolean> {
  const waited = new Promise((resolve) => setTimeout(() => resolve("waiting"), 60))
  return (await Promise.race([reply, waited])) === "waiting"
}
const count = async (): Promise<number> => Number(await server.command("GET", "count"))

it("the TCP proxy forwards bytes in order", async () => {
  const replies = Array.from({ length: 1_000 }, () => client.command("INCR", "count"))
  expect(await Promise.all(replies)).toEqual(Array.from({ length: 1_000 }, (_, i) => i + 1))
  expect(proxy.connections).toBe(1)
})

it("the TCP proxy delays each direction, and keeps the order when the delay shrinks", async () => {
  await client.command("PING")
  proxy.delayMs = 40
  const start = performance.now()
  const slow = client.command("INCR", "count")
  await until("the slow request is on its way", () => performance.now() - start > 5)
  proxy.delayMs = 0
  const quick = client.command("INCR", "count")
  expect(await Promise.all([slow, quick])).toEqual([1, 2])
  proxy.delayMs = 40
  const again = performance.now()
  await client.command("PING")
  expect(performance.now() - again).toBeGreaterThanOrEqual(79)
})

it("the TCP proxy holds back both directions while paused, and loses nothing", async () => {
  await client.command("PING")
  proxy.pause()
  const reply = client.command("INCR", "count")
  expect(await stillWaiting(reply)).toBe(true)
  expect(await count()).toBe(0)
  proxy.resume()
  expect(await reply).toBe(1)
})

it("the TCP proxy can hold back only the replies, while the server executes the commands", async () => {
  await client.command("PING")
  proxy.pause("replies")
  const reply = client.command("INCR", "count")
  expect(await stillWaiting(reply)).toBe(true)
  expect(await count()).toBe(1)
  proxy.resume("replies")
  expect(await reply).toBe(1)
})

it("the TCP proxy can drop replies and cut the connection", async () => {
  await client.command("PING")
  proxy.dropReplies = true
  const reply = client.command("INCR", "count")
  expect(await stillWaiting(reply)).toBe(true)
  expect(await count()).toBe(1)
  proxy.dropReplies = false
  proxy.cut()
  await expect(reply).rejects.toThrow()
  expect(proxy.connections).toBe(0)
  expect(await client.command("INCR", "count")).toBe(2)
})

it("the TCP proxy can refuse connections, and accept them again on the same port", async () => {
  await client.command("PING")
  proxy.refuse()
  expect(await client.command("PING")).toBe("PONG")
  proxy.cut()
  await expect(new RespConnection(proxy.host, proxy.port).command("PING")).rejects.toThrow("ECONNREFUSED")
  await proxy.accept()
  expect(await client.command("PING")).toBe("PONG")
})

it("the TCP proxy can send other bytes instead of the server's replies", async () => {
  await client.command("PING")
  proxy.answerWith("HTTP/1.1 400 Bad Request\r\n\r\n")
  await expect(client.command("INCR", "count")).rejects.toThrow("not RESP")
  expect(await count()).toBe(0)
  proxy.answerWith(undefined)
  client.close()
  expect(await client.command("INCR", "count")).toBe(1)
})

it("the TCP proxy closes one side when the server or the client closes the other", async () => {
  await client.command("PING")
  const clients = async (): Promise<number> =>
    String(await server.command("CLIENT", "LIST")).split("id=").length
  const before = await clients()
  client.close()
  await until("the server has one client less", async () => (await clients()) < before)
  expect(proxy.connections).toBe(0)
  const broken = expect(client.command("BLPOP", "nothing", 0)).rejects.toThrow()
  await until("it waits", async () =>
    /blocked_clients:1/.test(String(await server.command("INFO", "clients"))),
  )
  await server.kill()
  await broken
  await server.restart()
})
