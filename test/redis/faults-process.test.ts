import { AsyncLocalStorage } from "node:async_hooks"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { redisStore } from "@sluice/core/redis"
import { Redis } from "ioredis"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { afterwards, asker, checkEachTest } from "./load.ts"
import { type ClientChoice, LIBRARIES } from "./open-client.ts"

checkEachTest()

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server?.stop())

describe("a process that has finished its work", () => {
  /** Resolves with the output. Rejects if the process did not end by itself. */
  function run(choice: ClientChoice, ...args: string[]): Promise<string> {
    const script = fileURLToPath(new URL("decides-once.ts", import.meta.url))
    // Use the packages as built; `pnpm test` and `pnpm check` build them first.
    const env = {
      ...process.env,
      TSX_TSCONFIG_PATH: fileURLToPath(new URL("../../tsconfig.base.json", import.meta.url)),
    }
    const all = ["--import", "tsx", script, JSON.stringify(choice), ...args]
    return new Promise((resolve, reject) => {
      execFile(process.execPath, all, { timeout: 100_000, env }, (error, stdout) => {
        if (error === null) resolve(stdout)
        else reject(error)
      })
    })
  }

  it.each(LIBRARIES)("is not kept alive by a store that was used (%s)", async (library) => {
    expect(await run({ library, ports: [server.port], isCluster: false })).toBe("decided")
  })

  it("is not kept alive by a store whose server does not answer", async () => {
    const choice: ClientChoice = { library: "ioredis 6", ports: [server.port], isCluster: false }
    try {
      expect(await run(choice, `${server.pid}`)).toBe("degraded")
    } finally {
      server.thaw()
    }
  })
})

describe("the AsyncLocalStorage context of a request", () => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  const storage = new AsyncLocalStorage<object>()

  /**
   * Runs `work` in an async context. Returns a function that collects garbage and is true if the context still exists.
   */
  async function afterRequest(work: () => Promise<unknown>): Promise<() => boolean> {
    const context = {}
    const seen = new WeakRef(context)
    await storage.run(context, work)
    return () => {
      collect()
      return seen.deref() !== undefined
    }
  }

  function open(options: { lazyConnect?: boolean } = {}) {
    const client = new Redis(server.port, server.host, options)
    client.on("error", () => {})
    afterwards(() => client.disconnect())
    const store = redisStore({ client })
    afterwards(() => store.close())
    return store
  }

  it("is released after a store's first decision, although the connection and timers live on", async () => {
    const app = asker(open({ lazyConnect: true }), { storeTimeoutMs: 30_000 })
    const isThere = await afterRequest(() => app.ask())
    await app.ask()
    await until("it is let go", async () => !isThere())
  })

  it("is released while other requests keep the store busy without a pause", async () => {
    const app = asker(open(), { storeTimeoutMs: 30_000 })
    let isOver = false
    const busy = async () => {
      while (!isOver) await app.ask()
    }
    await app.ask()
    const others = Array.from({ length: 20 }, busy)
    try {
      const isThere = await afterRequest(() => Promise.all(Array.from({ length: 20 }, () => app.ask())))
      await until("it is let go", async () => !isThere())
    } finally {
      isOver = true
      await Promise.all(others)
    }
  })

  it("is released while an unresponsive server is probed in the background", async () => {
    const app = asker(open())
    await app.ask()
    server.freeze()
    try {
      const isThere = await afterRequest(() => until("nobody waits", () => app.decidesAtOnce()))
      await until("it is let go", async () => !isThere())
    } finally {
      server.thaw()
    }
    await app.askUntil(false)
  })
})
