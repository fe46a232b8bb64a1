import { Agent, request } from "node:http"
import { connect } from "node:net"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { dynamoDBRegistry } from "../../packages/dynamodb/src/index.ts"
import { startDynamoDB } from "../servers/dynamodb.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { startProxy, type TcpProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { type HealthClient, openHealth } from "./health-client.ts"
import { type Program, startProgram } from "./program.ts"
import { rulesFile } from "./rules-file.ts"
import { openStranger, type Stranger } from "./stranger.ts"

const RULES = "service_id: 1\nrules: { name: all, field: service, limit: 1000000, window: 1 day }\n"
const SERVICE = "sluice.v1.RateLimiter"
const ASKED = { service_id: 1 }

const rules = rulesFile(RULES)
/** The objects to close after a test. */
const opened: { close(): unknown }[] = []
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close()
})

async function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Program> {
  const program = await startProgram(args, env)
  opened.push({ close: () => program.stop() })
  return program
}
function stranger(address: string): Stranger {
  const client = openStranger(address, "sluice/v1/rate_limiter.proto", SERVICE)
  opened.push(client)
  return client
}
function health(address: string): HealthClient {
  const client = openHealth(address)
  opened.push(client)
  return client
}

/**
 * Sends a request over a keep-alive HTTP connection. Resolves with the status, and with whether the service will
 * close the connection.
 */
function post(
  program: Program,
  agent: Agent,
): Promise<{ readonly status: number; readonly isLast: boolean }> {
  return new Promise((resolve, reject) => {
    const asked = request(
      `${program.http}/${SERVICE}/ShouldForwardRequest`,
      { method: "POST", agent, headers: { "content-type": "application/json" } },
      (response) => {
        response.resume().once("end", () => {
          resolve({ status: response.statusCode ?? 0, isLast: response.headers.connection === "close" })
        })
      },
    )
    asked.once("error", reject).end('{"serviceId":1}')
  })
}

describe("readiness and health", () => {
  it("are positive after the rules have loaded, and earlier calls return UNAVAILABLE", async () => {
    const server = await startDynamoDB()
    opened.push({ close: () => server.stop() })
    const where = ["--table", "rules", "--endpoint"]
    await dynamoDBRegistry({ client: server.client(), tableName: "rules" }).createTable()
    const proxy = await startProxy(server)
    opened.push(proxy)
    proxy.refuse()
    const program = await start([...where, `http://${proxy.host}:${proxy.port}`])
    expect(await program.readyz()).toEqual({
      status: 503,
      body: { status: "starting", rules: "loading", store: { kind: "memory", status: "reachable" } },
    })
    expect((await fetch(`${program.operations}/livez`)).status).toBe(200)
    const asked = health(program.grpc)
    expect(await asked.check("")).toBe("NOT_SERVING")
    expect(await asked.check(SERVICE)).toBe("NOT_SERVING")
    expect(await asked.check("another.Service")).toBe(5)
    const watched = asked.watch(SERVICE)
    expect(await stranger(program.grpc).call("ShouldForwardRequest", ASKED)).toMatchObject({
      error: { code: 14 },
    })
    await proxy.accept()
    await program.said("The service is ready.")
    expect(await program.readyz()).toMatchObject({ status: 200, body: { status: "ready", rules: "loaded" } })
    expect([await asked.check(""), await asked.check(SERVICE)]).toEqual(["SERVING", "SERVING"])
    await until("the watcher has heard", () => watched.said.length === 2)
    expect(watched.said).toEqual(["NOT_SERVING", "SERVING"])
  })

  it("turn negative on shutdown while calls are still answered, until a second signal ends the program", async () => {
    const program = await start(["--rules", rules, "--drain-pause", "10m"])
    await program.said("The service is ready.")
    const asked = health(program.grpc)
    const client = stranger(program.grpc)
    const agent = new Agent({ keepAlive: true })
    expect(await post(program, agent)).toEqual({ status: 200, isLast: false })
    program.signal("SIGTERM")
    await program.said("The service is draining.")
    expect(await program.readyz()).toMatchObject({
      status: 503,
      body: { status: "draining", rules: "loaded" },
    })
    expect([await asked.check(""), await asked.check(SERVICE)]).toEqual(["NOT_SERVING", "NOT_SERVING"])
    expect((await fetch(`${program.operations}/livez`)).status).toBe(200)
    expect(await client.call("ShouldForwardRequest", ASKED)).toMatchObject({
      value: { should_forward: true },
    })
    expect(await post(program, agent)).toEqual({ status: 200, isLast: true })
    program.signal("SIGINT")
    expect(await program.ended).toEqual({ code: 1, signal: null })
  })
})

describe("shutdown", () => {
  it("is not delayed by a client that watches its health", async () => {
    const program = await start(["--rules", rules])
    await program.said("The service is ready.")
    const watched = health(program.grpc).watch("")
    await until("it is told", () => watched.said.length === 1)
    program.signal("SIGTERM")
    await watched.ended
    expect(watched.said.slice(0, 2)).toEqual(["SERVING", "NOT_SERVING"])
    expect(await program.ended).toEqual({ code: 0, signal: null })
    expect(await program.said("The service has ended.")).toMatchObject({ level: "info" })
  })

  describe("with calls in flight", () => {
    let redis: RedisServer
    let proxy: TcpProxy
    beforeAll(async () => {
      redis = await startRedis()
    })
    afterAll(() => redis.stop())

    /** Starts a program, and sends it a gRPC call and an HTTP call that wait for Redis. */
    async function startBusy(args: readonly string[]) {
      proxy = await startProxy(redis)
      opened.push(proxy)
      const program = await start(["--rules", rules, "--store-timeout", "1m", ...args], {
        REDIS_URL: `redis://${proxy.host}:${proxy.port}`,
      })
      const client = stranger(program.grpc)
      const agent = new Agent({ keepAlive: true })
      opened.push({ close: () => agent.destroy() })
      expect(await client.call("ShouldForwardRequest", ASKED)).toMatchObject({ value: { degraded: false } })
      await post(program, agent)
      proxy.pause()
      const overGrpc = client.call("ShouldForwardRequest", ASKED)
      const overHttp = post(program, agent).catch((error: Error) => error)
      // When a later call is answered, both earlier calls have arrived.
      await client.call("GetService", ASKED)
      await fetch(`${program.http}/nothing`)
      return { program, overGrpc, overHttp }
    }

    it("waits until they have been answered, even longer than the arrival timeout", async () => {
      const { program, overGrpc, overHttp } = await startBusy(["--arrival-time", "300ms"])
      const { hostname, port } = new URL(program.http)
      const half = connect(Number(port), hostname)
        .on("error", () => undefined)
        .resume()
      opened.push({ close: () => half.destroy() })
      const gone = new Promise((resolve) => half.once("close", resolve))
      half.write("POST / HTTP/1.1\r\nhost: a\r\n")
      program.signal("SIGTERM")
      await program.said("The service is draining.")
      await gone
      proxy.resume()
      expect(await overGrpc).toMatchObject({ value: { should_forward: true, degraded: false } })
      expect(await overHttp).toEqual({ status: 200, isLast: true })
      expect(await program.ended).toEqual({ code: 0, signal: null })
    })

    it("aborts them after the drain time, logs this, and exits with code 1", async () => {
      const { program, overGrpc, overHttp } = await startBusy(["--drain-time", "300ms"])
      program.signal("SIGTERM")
      expect(await overGrpc).toMatchObject({ error: { code: 14 } })
      expect(await overHttp).toBeInstanceOf(Error)
      expect(await program.ended).toEqual({ code: 1, signal: null })
      expect(await program.said(/were aborted/)).toMatchObject({ level: "error" })
      await program.said("The service has ended.")
      // The program does not log an outage of Redis when it closes its own store.
      expect(program.lines().filter(({ code }) => code !== undefined)).toEqual([])
    })
  })
})
