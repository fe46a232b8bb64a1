import { AsyncLocalStorage } from "node:async_hooks"
import { describe, expect, it } from "vitest"
import { type IoredisLike, ioredisCommands } from "./ioredis.ts"
import { LikeRedis } from "./testing/ioredis-like.ts"

/** Every status of ioredis except "ready" and "wait". */
const ELSEWHERE = ["connecting", "connect", "monitoring", "reconnecting", "disconnecting", "close", "end"]

describe("an ioredis client", () => {
  it("is ready only in the status `ready`, and is connected only in the status `wait`", () => {
    const client = new LikeRedis()
    const { isReady } = ioredisCommands(client)
    expect(isReady("a")).toBe(false)
    expect(client.status).toBe("connecting")
    for (const status of ELSEWHERE) {
      client.status = status
      expect([status, isReady("a")]).toEqual([status, false])
    }
    client.status = "ready"
    expect(isReady("a")).toBe(true)
    expect(client.connects).toBe(1)
  })

  it("is connected outside the request's async context, because the connection outlives the request", () => {
    const request = new AsyncLocalStorage<string>()
    const client = new LikeRedis()
    const seen: unknown[] = []
    client.connect = async () => void seen.push(request.getStore())
    request.run("the first", () => ioredisCommands(client).isReady("a"))
    expect(seen).toEqual([undefined])
  })

  it("reconnects to find its primary, but only if it is ready", () => {
    const client = new LikeRedis()
    const { reconnect } = ioredisCommands(client)
    for (const status of ["wait", ...ELSEWHERE]) {
      client.status = status
      reconnect("a")
    }
    expect(client.disconnects).toEqual([])
    client.status = "ready"
    reconnect("a")
    expect(client.disconnects).toEqual([true])
  })

  it("is closed only in the status `end`, which it never leaves by itself", () => {
    const client = new LikeRedis()
    const { isOpen } = ioredisCommands(client)
    for (const status of ["wait", "ready", ...ELSEWHERE]) {
      client.status = status
      expect([status, isOpen()]).toEqual([status, status !== "end"])
    }
  })

  it.each<[IoredisLike["options"], string]>([
    [{ host: "10.0.0.1", port: 6379 }, "10.0.0.1:6379"],
    [{ host: "localhost", port: 6379, path: "/run/redis.sock" }, "/run/redis.sock"],
    // With Sentinel, only the Sentinels know the server's address, which is not the host in the options.
    [{ host: "localhost", port: 6379, sentinels: [{}] }, ""],
    [{}, ""],
  ])("with options %j names its single node %j", (options, name) => {
    expect(ioredisCommands(new LikeRedis(options)).nodeOf("a")).toBe(name)
  })
})

describe("calls to an ioredis client", () => {
  // This test run fails if a rejection is unhandled, because it would end the app's process.
  it.each([
    ["rejects", () => Promise.reject(new Error("later"))],
    [
      "throws",
      () => {
        throw new Error("immediately")
      },
    ],
    ["sends nothing", () => undefined],
    ["sends a plain object", (send: Send) => send({ promise: Promise.resolve() })],
    ["sends an object of another class", (send: Send) => send(new Map())],
  ])("use the client's method `call` if the app's overridden method %s", async (_, evalsha) => {
    class Other extends LikeRedis {
      override evalsha() {
        return evalsha((command) => this.sendCommand(command as never))
      }
    }
    const client = new Other()
    const commands = ioredisCommands(client)
    expect(await commands.evalsha("abc", ["k"], ["1"])).toBe("called")
    expect(await commands.eval("return 1", ["k"], ["1"])).toBe("called")
    expect(await commands.del(["k", "l"])).toBe("called")
    expect(client.calls).toEqual([
      ["evalsha", "abc", "1", "k", "1"],
      ["eval", "return 1", "1", "k", "1"],
      ["del", "k", "l"],
    ])
    expect(client.sent).toEqual([])
  })

  it.each([
    { keyPrefix: undefined, sees: 0 },
    { keyPrefix: "app:", sees: 5 },
  ])(
    "pass $sees arguments to a command's constructor if the key prefix is $keyPrefix",
    async ({ keyPrefix, sees }) => {
      class Command {
        readonly promise = Promise.resolve("answered")
        readonly seen: number
        readonly args: readonly string[]
        constructor(_name: string, args: string[], { keyPrefix = "" }: { keyPrefix?: string } = {}) {
          this.seen = args.length
          this.args = args.flat().map((arg) => keyPrefix + arg)
        }
      }
      class Made extends LikeRedis {
        override evalsha(...args: string[]) {
          return this.sendCommand(new Command("evalsha", args))
        }
      }
      const client = new Made({ keyPrefix })
      await ioredisCommands(client).evalsha("abc", ["k", "l"], ["1"])
      const [{ seen, args }] = client.sent as unknown as [Command]
      const prefixed = (arg: string) => (keyPrefix ?? "") + arg
      expect([seen, args]).toEqual([sees, ["abc", "2", "k", "l", "1"].map(prefixed)])
    },
  )
})

type Send = (command: object) => unknown
