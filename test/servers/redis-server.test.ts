import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { afterEach, describe, expect, it } from "vitest"
import { isAlive } from "./processes.ts"
import { type RedisOptions, type RedisServer, startRedis } from "./redis-server.ts"
import { until } from "./until.ts"

const started: RedisServer[] = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()))
})

async function start(options: RedisOptions = {}): Promise<RedisServer> {
  const server = await startRedis(options)
  started.push(server)
  return server
}

async function folderOf(server: RedisServer): Promise<string> {
  return String([await server.command("CONFIG", "GET", "dir")].flat()[1])
}

describe("a started server", () => {
  it("uses its own port below 22768, even if another server starts at the same time", async () => {
    const [one, two] = await Promise.all([start(), start()])
    expect(one.port).not.toBe(two.port)
    expect(Math.max(one.port, two.port)).toBeLessThan(22_768)
    await one.command("SET", "here", 1)
    expect(await two.command("EXISTS", "here")).toBe(0)
    expect(await one.command("CONFIG", "GET", "save")).toEqual(["save", ""])
  })

  it("leaves no process or folder behind when stopped, even if frozen or stopped twice", async () => {
    const server = await start()
    const { pid } = server
    const folder = await folderOf(server)
    expect(existsSync(folder)).toBe(true)
    server.freeze()
    await server.stop()
    await server.stop()
    expect(isAlive(pid)).toBe(false)
    expect(existsSync(folder)).toBe(false)
    expect(() => server.pid).toThrow("not running")
  })
})

it("startRedis rejects if another server already uses the port", async () => {
  const server = await start()
  await expect(startRedis({ port: server.port })).rejects.toThrow("Address already in use")
})

it("startRedis rejects with the server's own message if the server does not start", async () => {
  await expect(startRedis({ args: ["--no-such-option", "1"] })).rejects.toThrow(/Bad directive/)
})

describe("a server whose parent process ends without stopping it", () => {
  const script = `
    import { startRedis } from ${JSON.stringify(new URL("./redis-server.ts", import.meta.url).href)}
    const server = await startRedis()
    const [, folder] = await server.command("CONFIG", "GET", "dir")
    process.stdout.write(JSON.stringify({ pid: server.pid, folder }))
    process.stdin.once("data", () => process.exit(0))`

  async function startElsewhere(): Promise<{ parent: ChildProcess; pid: number; folder: string }> {
    const parent = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
      stdio: ["pipe", "pipe", "inherit"],
    })
    const [said] = await once(parent.stdout, "data")
    return { parent, ...JSON.parse(String(said)) }
  }

  it.each(["exit", "SIGKILL"] as const)(
    "ends with its parent and leaves no folder behind: %s",
    async (end) => {
      const { parent, pid, folder } = await startElsewhere()
      expect(isAlive(pid)).toBe(true)
      if (end === "exit") parent.stdin?.write("\n")
      else parent.kill(end)
      await once(parent, "exit")
      await until("it is gone", () => !isAlive(pid) && !existsSync(folder))
    },
  )
})
