import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type RedisCluster, startCluster } from "../servers/redis-cluster.ts"
import { until } from "../servers/until.ts"
import { type RunningHere, startHere } from "./in-process.ts"
import { post } from "./post.ts"
import { FORWARD } from "./questions.ts"
import { rulesFile } from "./rules-file.ts"

const LIMIT = 3
const USERS = Array.from({ length: 30 }, (_, i) => `user-${i}`)

interface Program {
  readonly here: RunningHere
  ask(user: string): Promise<{ readonly shouldForward: boolean; readonly degraded: boolean }>
  store(): Promise<string>
}

const RULE = `{ name: user, field: user_id, algorithm: sliding-log, limit: ${LIMIT}, window: 1 day }`
const rules = rulesFile(`service_id: 1\nrules: ${RULE}\n`)

describe("the program on a Redis Cluster", () => {
  let cluster: RedisCluster
  const started: Program[] = []
  beforeAll(async () => {
    cluster = await startCluster({ primaries: 3 })
    for (const node of cluster.nodes)
      await node.command("ACL", "SETUSER", "app", "on", ">p@ss,word", "~*", "+@all")
  })
  beforeEach(async () => {
    for (const node of cluster.nodes) await node.command("FLUSHALL")
  })
  afterEach(async () => {
    await Promise.all(started.splice(0).map(({ here }) => here.stop()))
  })
  afterAll(() => cluster?.stop())

  async function run(url: string, timeout: string): Promise<Program> {
    const args = ["--rules", rules, "--redis-cluster", "--store-timeout", timeout]
    const here = await startHere(args, { REDIS_URL: url })
    const program: Program = {
      here,
      async ask(user) {
        const asked = { serviceId: 1, request: JSON.stringify({ user_id: user }) }
        return (await post(here, FORWARD, asked)).body as Awaited<ReturnType<Program["ask"]>>
      },
      store: async () =>
        ((await here.readyz()).body as { readonly store: { readonly status: string } }).store.status,
    }
    started.push(program)
    await here.said("The service is ready.")
    await until("the cluster is reachable", async () => (await program.store()) === "reachable")
    return program
  }

  it("finds every node through one node, logs in to each, and counts together with other processes", async () => {
    const [node] = cluster.nodes
    const url = `redis://app:p%40ss%2Cword@${node?.host}:${node?.port}`
    const two = await Promise.all([run(url, "20s"), run(url, "20s")])
    const asked = USERS.flatMap((user) => Array.from({ length: LIMIT + 2 }, () => user))
    const answers = await Promise.all(asked.map((user, i) => (two[i % 2] as Program).ask(user)))
    expect(answers.filter(({ degraded }) => degraded)).toEqual([])
    expect(answers.filter(({ shouldForward }) => shouldForward)).toHaveLength(USERS.length * LIMIT)
    const sizes = await Promise.all(cluster.nodes.map((one) => one.command("DBSIZE")))
    expect(sizes.every((size) => Number(size) > 0)).toBe(true)
    for (const one of cluster.nodes)
      expect(String(await one.command("CLIENT", "LIST")).match(/ user=app /g)?.length).toBeGreaterThanOrEqual(
        2,
      )
    expect((await two[0]?.here.said("sluice-service is listening."))?.settings).toMatchObject({
      redis: `redis://***@${node?.host}:${node?.port}`,
      redisCluster: true,
    })
  })

  it("starts with any given node that responds, and logs when some counters are unavailable", async () => {
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

  it("still logs the outage after the cluster has given up a node without a replica", async () => {
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
