import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { redisForTests } from "../servers/redis-for-tests.ts"
import { type ClientChoice, librariesInTurn } from "./open-client.ts"

const { server } = await redisForTests()

/** Runs a script in a new process, and resolves with its output. Rejects if the process did not end by itself. */
function runScript(script: URL, ...args: string[]): Promise<string> {
  // Use the packages as built; `pnpm test` and `pnpm check` build them first.
  const env = {
    ...process.env,
    TSX_TSCONFIG_PATH: fileURLToPath(new URL("../../tsconfig.base.json", import.meta.url)),
  }
  const all = ["--expose-gc", "--import", "tsx", fileURLToPath(script), ...args]
  return new Promise((resolve, reject) => {
    execFile(process.execPath, all, { timeout: 100_000, env }, (error, stdout) => {
      if (error === null) resolve(stdout)
      else reject(error)
    })
  })
}

describe("a process that has finished its work", () => {
  const run = (choice: ClientChoice, ...args: string[]) =>
    runScript(new URL("decides-once.ts", import.meta.url), JSON.stringify(choice), ...args)

  it.each(librariesInTurn(1))(
    "is not kept alive by a store that has decided requests (%s)",
    async (library) => {
      expect(await run({ library, ports: [server.port], isCluster: false })).toBe("decided")
    },
  )

  it("is not kept alive by a store whose server does not respond", async () => {
    const choice: ClientChoice = { library: "ioredis 6", ports: [server.port], isCluster: false }
    try {
      expect(await run(choice, `${server.pid}`)).toBe("degraded")
    } finally {
      server.thaw()
    }
  })
})

describe("the AsyncLocalStorage context of a request", () => {
  // Run in a separate process, because all test files of a worker share one heap, which would take long to search.
  const outcomeOf = (situation: string) =>
    runScript(new URL("request-context.ts", import.meta.url), situation, `${server.port}`, `${server.pid}`)

  it("is reported with the object that references it, if it is not released", async () => {
    expect(await outcomeOf("held")).toMatch(/Timeout.* → .*RequestContext$/)
  })

  it.each([
    ["after a store's first decision, although the connection and timers live on", "first"],
    ["while other requests keep the store busy without a pause", "busy"],
    ["while an unresponsive server is probed in the background", "silent"],
  ])("is released %s", async (_when, situation) => {
    try {
      expect(await outcomeOf(situation)).toBe("released")
    } finally {
      server.thaw()
    }
  })
})
