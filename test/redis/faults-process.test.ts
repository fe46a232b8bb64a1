import { AsyncLocalStorage } from "node:async_hooks"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { redisStore } from "@sluice/redis"
import { Redis } from "ioredis"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { whatHolds } from "../servers/retainers.ts"
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

  class RequestContext {}

  /** Runs `work` in an async context. Rejects with what holds the context if it is not released afterwards. */
  async function isReleasedAfter(work: () => Promise<unknown>): Promise<void> {
    const seen = await run(work)
    const isReleased = (): boolean => {
      collect()
      return seen.deref() === undefined
    }
    try {
      await until("it is let go", isReleased, 20_000)
    } catch (error) {
      throw new Error(await whatHolds(RequestContext.name), { cause: error })
    }
  }

  async function run(work: () => Promise<unknown>): Promise<WeakRef<RequestContext>> {
    const context = new RequestContext()
    await storage.run(context, work)
    return new WeakRef(context)
  }

  it("is reported with what holds it, if it is not released", async () => {
    let timer: NodeJS.Timeout | undefined
    await run(async () => {
      timer = setTimeout(() => {}, 60_000)
    })
    expect(await whatHolds(RequestContext.name)).toMatch(/Timeout.* → .*RequestContext$/)
    clearTimeout(timer)
  })

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
    await isReleasedAfter(() => app.ask())
    await app.ask()
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
      await isReleasedAfter(() => Promise.all(Array.from({ length: 20 }, () => app.ask())))
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
      await isReleasedAfter(() => until("nobody waits", () => app.decidesAtOnce()))
    } finally {
      server.thaw()
    }
    await app.askUntil(false)
  })
})
