import { createHash } from "node:crypto"
import { redisStore } from "@sluice/redis"
import { Decoder, GlideClient, Logger } from "@valkey/valkey-glide"
import { describe, expect, it } from "vitest"
import { commandsOf } from "../../packages/redis/src/clients/commands-of.ts"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { startProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { afterwards, checkEachTest } from "./load.ts"
import { MONTHLY_CHECK } from "./monthly-check.ts"

Logger.setLoggerConfig("off")
checkEachTest()

/** A script that counts how often it has run. */
const COUNT = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
const SHA = createHash("sha1").update(COUNT).digest("hex")
const { server } = await redisForTests()

async function open(
  options: Partial<Parameters<typeof GlideClient.createClient>[0]> = {},
  port = server.port,
) {
  const client = await GlideClient.createClient({ addresses: [{ host: server.host, port }], ...options })
  afterwards(() => client.close())
  return { client, commands: commandsOf(client) }
}

describe("a GlideClient", () => {
  it("returns strings and the codes of Redis' errors, even if it is configured to return bytes", async () => {
    const { commands } = await open({ defaultDecoder: Decoder.Bytes })
    await server.command("SCRIPT", "FLUSH")
    await expect(commands.evalsha(SHA, ["a"], ["2"])).rejects.toThrow(/^NOSCRIPT /)
    expect(await commands.eval(COUNT, ["a"], ["2"])).toBe(2)
    expect(await commands.evalsha(SHA, ["a"], ["3"])).toBe(5)
    expect(await commands.eval("return { KEYS[2], ARGV[1] }", ["a", "é"], ["x y"])).toEqual(["é", "x y"])
    expect(await commands.del(["a", "b"])).toBe(1)
    for (const reply of [
      "OOPS it",
      "READONLY it",
      "MASTERDOWN it",
      "TRYAGAIN it",
      "NOPERM it",
      "LOADING it",
    ]) {
      const failing = `return redis.error_reply('${reply}')`
      await expect(commands.eval(failing, ["a"], [""])).rejects.toThrow(new RegExp(`^${reply}`))
    }
  })

  it("never repeats a call whose reply was lost, and discards a call that found no connection", async () => {
    const proxy = await startProxy(server)
    afterwards(() => proxy.close())
    const { commands } = await open({ requestTimeout: 300 }, proxy.port)
    await commands.eval(COUNT, ["warm"], ["1"])
    proxy.dropReplies = true
    const outcomes = Promise.allSettled(["a", "b"].map((key) => commands.evalsha(SHA, [key], ["1"])))
    await until("the server ran them", async () => (await server.command("GET", "b")) === "1")
    proxy.refuse()
    proxy.cut()
    proxy.dropReplies = false
    expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"])
    await expect(commands.evalsha(SHA, ["c"], ["1"])).rejects.toThrow("300 ms of the client's requestTimeout")
    await proxy.accept()
    await until("it is connected again", () =>
      commands.eval(COUNT, ["warm"], ["1"]).then(
        () => true,
        () => false,
      ),
    )
    expect(await server.command("MGET", "a", "b", "c")).toEqual(["1", "1", null])
  })

  it("makes a call with a longer timeout fail at its own requestTimeout, with an unknown outcome", async () => {
    const { client } = await open({ requestTimeout: 100 })
    const store = redisStore({ client, timeoutMs: 20_000 })
    afterwards(() => store.close())
    await store.take([MONTHLY_CHECK])
    server.freeze()
    try {
      await expect(store.take([MONTHLY_CHECK])).rejects.toMatchObject({
        kind: "timeout",
        message: "Redis did not respond within the 100 ms of the client's requestTimeout.",
      })
      await expect(store.reset([MONTHLY_CHECK])).rejects.toMatchObject({ outcome: "unknown" })
    } finally {
      server.thaw()
    }
  })

  it("is no longer used after the app has closed it", async () => {
    const { client, commands } = await open()
    expect([commands.isReady("a"), commands.isOpen()]).toEqual([true, true])
    client.close()
    expect([commands.isReady("a"), commands.isOpen()]).toEqual([false, false])
    await expect(redisStore({ client, timeoutMs: 100 }).take([MONTHLY_CHECK])).rejects.toThrow(
      "its client never connected or was closed",
    )
  })
})
