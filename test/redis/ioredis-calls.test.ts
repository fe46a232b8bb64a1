import { Redis } from "ioredis"
import { Redis as Redis5 } from "ioredis5"
import { describe, expect, it } from "vitest"
import { commandsOf } from "../../packages/redis/src/clients/commands-of.ts"

/** The tests use only members that both versions have. */
const VERSIONS: readonly (readonly [string, typeof Redis])[] = [
  ["ioredis 6", Redis],
  ["ioredis 5", Redis5 as unknown as typeof Redis],
]

/** A command as ioredis would write it. */
interface Written {
  readonly name: string
  readonly args: readonly string[]
  readonly pipelineIndex?: number
}

/** Returns the commands that a disconnected client would send. Each command gets a reply immediately. */
function writtenBy(client: Redis): readonly Written[] {
  const written: Written[] = []
  client.sendCommand = (command) => {
    written.push(command as unknown as Written)
    return Promise.resolve(`answer ${written.length}`)
  }
  return written
}

describe.each(VERSIONS)("the calls on a client of %s", (_, Client) => {
  it("are separate commands that are never resent", async () => {
    const client = new Client({ lazyConnect: true })
    const written = writtenBy(client)
    const commands = commandsOf(client)
    expect(await commands.evalsha("abc", ["k", "l"], ["1", "é"])).toBe("answer 1")
    expect(await commands.eval("return 1", ["k"], [])).toBe("answer 2")
    expect(await commands.del(["k", "l"])).toBe("answer 3")
    expect(written.map(({ name, args }) => [name, ...args])).toEqual([
      ["evalsha", "abc", "2", "k", "l", "1", "é"],
      ["eval", "return 1", "1", "k"],
      ["del", "k", "l"],
    ])
    for (const { pipelineIndex } of written) expect(pipelineIndex).toBe(-1)
  })

  it("bypass a method that the app has replaced on its client", async () => {
    const client = new Client({ lazyConnect: true })
    const written = writtenBy(client)
    client.evalsha = () => {
      throw new Error("the app's own")
    }
    await commandsOf(client).evalsha("abc", ["k"], [])
    expect(written.map(({ pipelineIndex }) => pipelineIndex)).toEqual([-1])
  })

  it("are also never resent if the app's own client class validates the arguments", async () => {
    class Checked extends Client {
      override async evalsha(...args: unknown[]) {
        const [sha, keys] = args
        if (typeof sha !== "string" || sha === "" || !/^\d+$/.test(String(keys))) throw new Error("no script")
        return super.evalsha(...(args as Parameters<Redis["evalsha"]>))
      }
    }
    const client = new Checked({ lazyConnect: true })
    const written = writtenBy(client)
    await commandsOf(client).evalsha("abc", ["k"], [])
    expect(written.map(({ pipelineIndex }) => pipelineIndex)).toEqual([-1])
  })
})
