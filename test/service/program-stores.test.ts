import { renameSync, writeFileSync } from "node:fs"
import { PutItemCommand } from "@aws-sdk/client-dynamodb"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { dynamoDBRegistry } from "../../packages/dynamodb/src/index.ts"
import { blocksTestedBy } from "../docs/shown.ts"
import { unitsIn } from "../redis/counted.ts"
import { type DynamoDBServer, startDynamoDB } from "../servers/dynamodb.ts"
import { startFaultProxy } from "../servers/fault-proxy.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { startProxy, type TcpProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { type RunningHere, startHere } from "./in-process.ts"
import { post } from "./post.ts"
import { startProgram } from "./program.ts"
import { rulesFile } from "./rules-file.ts"

const RULES = `
service_id: 1
rules: { name: per-user, field: user_id, algorithm: sliding-log, limit: 3, window: 1 day }
`
const TOKEN = "token-of-all-services"
/** A timeout that a busy machine does not exceed. */
const PATIENT = ["--store-timeout", "20s"]

const rules = rulesFile(RULES)
const programs: { stop(): Promise<unknown> }[] = []
/** Starts a program. Resolves when the program is ready. */
const start = async (
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<RunningHere> => {
  const program = await startHere(args, env)
  programs.push(program)
  await program.said("The service is ready.")
  return program
}
beforeEach(() => writeFileSync(rules, RULES))
afterEach(async () => {
  await Promise.all(programs.splice(0).map((program) => program.stop()))
})

/** A program in this process or in another process. */
type Asked = Pick<RunningHere, "http" | "readyz">

const call = async (program: Asked, method: string, body: object) =>
  (await post(program, `/sluice.v1.RateLimiter/${method}`, body, { authorization: `Bearer ${TOKEN}` })).body
const ask = (program: Asked, user: string) =>
  call(program, "ShouldForwardRequest", { serviceId: 1, request: JSON.stringify({ user_id: user }) })
const storeOf = async (program: Asked) =>
  ((await program.readyz()).body as { readonly store: { readonly status: string } }).store.status

describe("the program with Redis", () => {
  let redis: RedisServer
  let proxy: TcpProxy
  let env: Readonly<Record<string, string>>
  beforeAll(async () => {
    redis = await startRedis()
  })
  beforeEach(async () => {
    await redis.command("FLUSHALL")
    proxy = await startProxy(redis)
    env = { REDIS_URL: `redis://${proxy.host}:${proxy.port}` }
  })
  afterEach(() => proxy.close())
  afterAll(() => redis.stop())

  it("counts together with other processes, under its configured prefix", async () => {
    const args = ["--rules", rules, "--redis-prefix", "shop:", ...PATIENT]
    const two = [await startProgram(args, env), await start(args, env)] as const
    programs.push(two[0])
    await two[0].said("The service is ready.")
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => ask(two[i % 2] as Asked, "ada")))
    expect(answers.filter(({ shouldForward }) => shouldForward === true)).toHaveLength(3)
    expect(answers.every(({ degraded }) => degraded === false)).toBe(true)
    const keys = String(await redis.command("KEYS", "*"))
    expect(keys).toMatch(/^shop:sl2:/)
    const shown = await call(two[0], "ShowClient", { serviceId: 1, rule: "per-user", client: ["ada"] })
    expect(shown).toMatchObject({ partition: "ada", key: keys })
  })

  it("also counts in the Redis of other data centers, and stays ready without them", async () => {
    const eu = await startRedis()
    const link = await startProxy(eu)
    try {
      const mirrors = { SLUICE_MIRRORS: JSON.stringify({ eu: `redis://${link.host}:${link.port}` }) }
      const here = await start(["--rules", rules, ...PATIENT], { ...env, ...mirrors })
      const there = await start(["--rules", rules, ...PATIENT], {
        REDIS_URL: `redis://${eu.host}:${eu.port}`,
      })
      for (let i = 0; i < 2; i++) expect(await ask(here, "ada")).toMatchObject({ shouldForward: true })
      await until("the other data center has counted them", async () => (await eu.command("DBSIZE")) === 1)
      expect(await ask(there, "ada")).toMatchObject({ shouldForward: true, remaining: "0" })
      expect(await ask(there, "ada")).toMatchObject({ shouldForward: false, degraded: false })
      link.close()
      const { code } = await here.said(/no connection to the Redis of the data center "eu"/)
      expect(code).toBeUndefined()
      expect(await ask(here, "bob")).toMatchObject({ shouldForward: true, degraded: false })
      expect(await storeOf(here)).toBe("reachable")
      await here.said(/The data center "eu" did not confirm 1 unit/)
    } finally {
      link.close()
      await eu.stop()
    }
  })

  it("grants large limits from leases with --lease, and returns unused units when it ends", async () => {
    writeFileSync(rules, "service_id: 1\nrules: { name: all, limit: 100000, window: 1 day }\n")
    const program = await start(["--rules", rules, "--lease", ...PATIENT], env)
    let asked = 0
    await until("more units are booked than were asked for", async () => {
      expect(await ask(program, "ada")).toMatchObject({ shouldForward: true, degraded: false })
      asked++
      return (await unitsIn(redis, "sl2:")) > asked
    })
    await program.stop()
    expect(await unitsIn(redis, "sl2:")).toBe(asked)
  })

  it("with --write-back, decides without waiting for Redis and takes the units there later", async () => {
    writeFileSync(rules, "service_id: 1\nrules: { name: all, field: user_id, limit: 3, window: 1 day }\n")
    const [one, two] = [
      await start(["--rules", rules, "--write-back", "on", ...PATIENT], env),
      await start(["--rules", rules, "--write-back", "50ms", ...PATIENT], env),
    ]
    for (let i = 0; i < 2; i++) expect(await ask(one, "ada")).toMatchObject({ shouldForward: true })
    await until("the units are charged", async () => (await unitsIn(redis, "sl2:")) === 2)
    expect(await ask(two, "ada")).toMatchObject({ shouldForward: true })
    await until("each knows what the other has admitted", async () => {
      const answers = [await ask(one, "ada"), await ask(two, "ada")]
      return answers.every(({ shouldForward }) => shouldForward === false)
    })
    proxy.refuse()
    proxy.cut()
    const before = performance.now()
    expect(await ask(one, "bob")).toMatchObject({ shouldForward: true })
    // The program did not wait for the 20 s of the store's timeout.
    expect(performance.now() - before).toBeLessThan(15_000)
    await until("it says so", async () => (await ask(one, "bob")).degraded === true)
  })

  it("is ready without Redis, logs the outage, and counts in Redis when it is available again", async () => {
    proxy.refuse()
    const program = await start(["--rules", rules, "--store-timeout", "500ms"], env)
    expect(await program.readyz()).toEqual({
      status: 200,
      body: { status: "ready", rules: "loaded", store: { kind: "redis", status: "degraded" } },
    })
    for (const [left, isAdmitted] of [
      [2, true],
      [1, true],
      [0, true],
      [0, false],
    ] as const) {
      expect(await ask(program, "ada")).toMatchObject({
        shouldForward: isAdmitted,
        remaining: `${left}`,
        degraded: true,
      })
    }
    await proxy.accept()
    await until("Redis is reachable", async () => (await storeOf(program)) === "reachable")
    await until("it counts in Redis", async () => (await ask(program, "bob")).degraded === false)
    expect(await ask(program, "ada")).toMatchObject({ degraded: false, remaining: "2" })
  })

  it("keeps deciding when Redis fails, and logs the outage and the recovery", async () => {
    writeFileSync(rules, `${RULES}---\nservice_id: 2\nrules: { name: all, limit: 100, window: 1 day }\n`)
    const program = await start(["--rules", rules], env)
    const askBoth = () =>
      Promise.all([ask(program, "ada"), call(program, "ShouldForwardRequest", { serviceId: 2 })])
    const isDegraded = async (expected: boolean) =>
      (await askBoth()).every(({ degraded }) => degraded === expected)
    await until("both count in Redis", () => isDegraded(false))
    const [shown] = blocksTestedBy("test/service/program-stores.test.ts", "docs/service/deploy.md", 1)
    expect(await program.readyz()).toEqual({ status: 200, body: JSON.parse(shown?.text ?? "") })
    proxy.refuse()
    proxy.cut()
    await until("both are decided without it", () => isDegraded(true))
    await until("it says so", async () => (await storeOf(program)) === "degraded")
    await program.said(/Until the store responds again, each process admits up to \d+ of \d+ under rule/)
    await proxy.accept()
    const told = (code: string) => program.lines().filter((line) => line.code === code).length
    // A limiter considers its store recovered after it has responded for one second.
    const isBack = async () =>
      (await isDegraded(false)) &&
      told("SLUICE_RECOVERED") > 0 &&
      told("SLUICE_RECOVERED") === told("SLUICE_DEGRADED")
    await until("it says that Redis is back", isBack)
    expect(await storeOf(program)).toBe("reachable")
  })

  it("logs that Redis refuses the database of the URL, and which database it uses instead", async () => {
    const program = await start(["--rules", rules, ...PATIENT], { REDIS_URL: `${env.REDIS_URL}/99` })
    const { err } = await program.said(/refuses the database of REDIS_URL, so .* in database 0/)
    expect(err).toMatchObject({ message: "ERR DB index is out of range" })
    expect(await ask(program, "ada")).toMatchObject({ degraded: false })
    expect(program.output()).not.toMatch(/no connection to Redis|Connected to Redis again/)
  })
})

describe("the program with a table", () => {
  let server: DynamoDBServer
  beforeAll(async () => {
    server = await startDynamoDB()
  })
  afterAll(() => server.stop())

  it("creates the table if allowed, registers rules for callers with a token, and logs each change once", async () => {
    const where = ["--table", "rules", "--endpoint", server.endpoint]
    const program = await start([...where, "--create-table"], {
      SLUICE_TOKENS: JSON.stringify({ "*": TOKEN }),
    })
    const rule = { field: "user_id", rate: { requestsPerUnit: 1, unit: "day" } }
    expect(await call(program, "RegisterService", { serviceId: 1, rule })).toMatchObject({ version: "1" })
    expect(await ask(program, "ada")).toMatchObject({ shouldForward: true, remaining: "0" })
    expect(await ask(program, "ada")).toMatchObject({ shouldForward: false })
    expect(await program.said("Rules were registered.")).toMatchObject({
      service: "1",
      after: { version: 1 },
    })
    expect(await program.said("The rules of a service have changed.")).toMatchObject({
      service: "1",
      change: "loaded",
    })
    expect(program.lines().filter(({ msg }) => /rules/i.test(msg))).toHaveLength(2)
  })

  it("retries over another connection if the first connection hangs, and loads the rules", async () => {
    await dynamoDBRegistry({ client: server.client(), tableName: "slow" }).createTable()
    const proxy = await startFaultProxy(server)
    try {
      proxy.fault = () => (proxy.calls.length === 1 ? "hang" : undefined)
      const program = await start(["--table", "slow", "--endpoint", proxy.endpoint])
      expect(program.lines().filter(({ level }) => level !== "info")).toEqual([])
      // Every line of the output belongs to the log.
      expect(program.output().trimEnd().split("\n")).toHaveLength(program.lines().length)
    } finally {
      await proxy.stop()
    }
  })

  it("polls the table, and so loads rules that were registered elsewhere", async () => {
    const where = ["--table", "polled", "--endpoint", server.endpoint, "--create-table", "--poll", "100ms"]
    const first = await start(where)
    const second = await start(where)
    const rules = [{ name: "all", limit: 1, window: "1 day" }]
    await call(first, "RegisterService", { service: "shop", rules })
    const limited = async () =>
      (await call(second, "ShouldForwardRequest", { service: "shop" })).policy === "all"
    await until("the other one knows", limited)
  })

  it("starts if all stored rules are invalid, logs the number of services, and accepts corrections", async () => {
    const client = server.client()
    await dynamoDBRegistry({ client, tableName: "wrong" }).createTable()
    const put = (service: string, limit: number) =>
      client.send(
        new PutItemCommand({
          TableName: "wrong",
          Item: { service_id: { S: service }, rules: { S: `{ "limit": ${limit}, "window": "1 day" }` } },
        }),
      )
    await Promise.all([put("cart", 0), put("shop", 0)])
    const where = ["--table", "wrong", "--endpoint", server.endpoint]
    const program = await start(where)
    const atStart = await program.said(
      "Some services have no rules in force, because their stored rules are invalid. Correct the rules.",
    )
    expect(atStart).toMatchObject({
      level: "error",
      wrong: 2,
      services: 2,
      err: { type: "InvalidRuleError" },
    })
    expect(["cart", "shop"]).toContain(atStart.example)
    expect(await call(program, "ShouldForwardRequest", { service: "shop" })).toMatchObject({
      code: "unavailable",
    })
    const rules = [{ name: "all", limit: 1, window: "1 day" }]
    await call(program, "RegisterService", { service: "shop", rules, version: 0 })
    expect(await call(program, "ShouldForwardRequest", { service: "shop" })).toMatchObject({
      shouldForward: true,
      policy: "all",
    })
    const next = await start(where)
    expect(await next.said(/^Some services have no rules in force/)).toMatchObject({
      ...{ wrong: 1, services: 2, example: "cart" },
      err: { message: expect.stringContaining("0 is not a limit") },
    })
    await put("cart", 1)
    const last = await start(where)
    expect(last.output()).not.toContain("no rules in force")
  })
})

describe("the program with a rules file", () => {
  it("applies changes of the file, keeps the previous rules if new rules are invalid, and logs both", async () => {
    const program = await start(["--rules", rules])
    expect(await ask(program, "ada")).toMatchObject({ limit: "3" })
    const put = (text: string): void => {
      writeFileSync(`${rules}.new`, text)
      renameSync(`${rules}.new`, rules)
    }
    put(RULES.replace("limit: 3", "limit: 7"))
    expect(await program.said("The rules of a service have changed.")).toMatchObject({
      service: "1",
      change: "changed",
      rules: ["per-user"],
    })
    expect(await ask(program, "ada")).toMatchObject({ limit: "7", remaining: "5" })
    put("rules: [")
    expect(await program.said(/rules\.yaml/)).toMatchObject({ level: "error", code: "SLUICE_RULES_REJECTED" })
    expect(await ask(program, "ada")).toMatchObject({ limit: "7", remaining: "4" })
    expect((await program.readyz()).status).toBe(200)
  })
})
