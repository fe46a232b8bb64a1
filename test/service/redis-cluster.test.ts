import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { createLog } from "../../packages/service/src/program/log.ts"
import { type Running, start } from "../../packages/service/src/program/running.ts"
import { createCommand } from "../../packages/service/src/program/settings/command.ts"
import { readSettings } from "../../packages/service/src/program/settings/read-settings.ts"
import { type RedisCluster, startCluster } from "../servers/redis-cluster.ts"
import { until } from "../servers/until.ts"
import { NO_METRICS } from "./in-process.ts"

const FREE = ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--operations", "127.0.0.1:0"]
const LIMIT = 3
const USERS = Array.from({ length: 30 }, (_, i) => `user-${i}`)

interface Started {
  readonly running: Running
  readonly lines: readonly { readonly msg: string; readonly settings?: object }[]
  ask(user: string): Promise<{ readonly shouldForward: boolean; readonly degraded: boolean }>
  store(): Promise<string>
}

describe("the program on a Redis Cluster", () => {
  let cluster: RedisCluster
  let folder: string
  const started: Started[] = []
  beforeAll(async () => {
    cluster = await startCluster({ primaries: 3 })
    for (const node of cluster.nodes)
      await node.command("ACL", "SETUSER", "app", "on", ">p@ss,word", "~*", "+@all")
    folder = mkdtempSync(join(tmpdir(), "sluice-cluster-"))
    const rule = `{ name: user, field: user_id, algorithm: sliding-log, limit: ${LIMIT}, window: 1 day }`
    writeFileSync(join(folder, "rules.yaml"), `service_id: 1\nrules: ${rule}\n`)
  })
  beforeEach(async () => {
    for (const node of cluster.nodes) await node.command("FLUSHALL")
  })
  afterEach(async () => {
    await Promise.all(started.splice(0).map(({ running }) => running.drain()))
  })
  afterAll(async () => {
    await cluster?.stop()
    rmSync(folder, { recursive: true })
  })

  async function run(url: string, timeout: string): Promise<Started> {
    const lines: { readonly msg: string; readonly ports?: Readonly<Record<string, number>> }[] = []
    const log = createLog("info", { write: (line) => void lines.push(JSON.parse(line)) })
    const noop = (): void => undefined
    const rules = join(folder, "rules.yaml")
    const args = [...FREE, "--rules", rules, "--redis-cluster", "--store-timeout", timeout]
    const command = createCommand("0", noop, noop).parse(args, { from: "user" })
    const env = { REDIS_URL: url }
    const running = await start(readSettings(command, env), env, log, NO_METRICS)
    const { http, operations } = lines.find(({ ports }) => ports !== undefined)?.ports ?? {}
    const one: Started = {
      running,
      lines,
      async ask(user) {
        const response = await fetch(`http://127.0.0.1:${http}/sluice.v1.RateLimiter/ShouldForwardRequest`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ serviceId: 1, request: JSON.stringify({ user_id: user }) }),
        })
        return (await response.json()) as Awaited<ReturnType<Started["ask"]>>
      },
      async store() {
        const ready = await (await fetch(`http://127.0.0.1:${operations}/readyz`)).json()
        return (ready as { readonly store: { readonly status: string } }).store.status
      },
    }
    started.push(one)
    await until("the rules are loaded", () => lines.some(({ msg }) => msg === "The service is ready."))
    await until("the cluster is reachable", async () => (await one.store()) === "reachable")
    return one
  }

  it("finds every node through one, logs in to each, and counts together with other processes", async () => {
    const [node] = cluster.nodes
    const url = `redis://app:p%40ss%2Cword@${node?.host}:${node?.port}`
    const two = await Promise.all([run(url, "20s"), run(url, "20s")])
    const asked = USERS.flatMap((user) => Array.from({ length: LIMIT + 2 }, () => user))
    const answers = await Promise.all(asked.map((user, i) => (two[i % 2] as Started).ask(user)))
    expect(answers.filter(({ degraded }) => degraded)).toEqual([])
    expect(answers.filter(({ shouldForward }) => shouldForward)).toHaveLength(USERS.length * LIMIT)
    const sizes = await Promise.all(cluster.nodes.map((one) => one.command("DBSIZE")))
    expect(sizes.every((size) => Number(size) > 0)).toBe(true)
    for (const one of cluster.nodes)
      expect(String(await one.command("CLIENT", "LIST")).match(/ user=app /g)?.length).toBeGreaterThanOrEqual(
        2,
      )
    expect(two[0]?.lines.find(({ settings }) => settings !== undefined)?.settings).toMatchObject({
      redis: `redis://***@${node?.host}:${node?.port}`,
      redisCluster: true,
    })
  })

  it("starts with any given node that answers, and logs when part of the counters is gone", async () => {
    const [first, second] = cluster.nodes
    const gone = "redis://127.0.0.1:1"
    const one = await run(`${gone}, redis://${first?.host}:${first?.port}`, "500ms")
    expect((await one.ask("ada")).degraded).toBe(false)
    second?.freeze()
    try {
      expect(await one.store()).toBe("degraded")
      const answers = await Promise.all(USERS.map((user) => one.ask(user)))
      expect(answers.every(({ shouldForward }) => shouldForward)).toBe(true)
      expect(answers.some(({ degraded }) => degraded)).toBe(true)
    } finally {
      second?.thaw()
    }
    await until("the cluster is reachable", async () => (await one.store()) === "reachable")
  })

  it("still logs it after the cluster has given up a node without a replica", async () => {
    const [first, , third] = cluster.nodes
    const one = await run(`redis://${first?.host}:${first?.port}`, "500ms")
    await third?.kill()
    await until("the others give it up", async () =>
      /cluster_slots_fail:[1-9]/.test(String(await first?.command("CLUSTER", "INFO"))),
    )
    const answers = await Promise.all(USERS.map((user) => one.ask(user)))
    expect(answers.some(({ degraded }) => degraded)).toBe(true)
    expect(await one.store()).toBe("degraded")
    await third?.restart()
    await until("the cluster is reachable", async () => (await one.store()) === "reachable")
  })
})
