import { writeFileSync } from "node:fs"
import { type AddressInfo, connect, createServer } from "node:net"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, describe, expect, it } from "vitest"
import type { Metrics } from "../../packages/service/src/program/metrics.ts"
import { startDynamoDB } from "../servers/dynamodb.ts"
import { startRedis } from "../servers/redis-server.ts"
import { startProxy } from "../servers/tcp-proxy.ts"
import { until } from "../servers/until.ts"
import { NO_METRICS, type RunningHere, startHere } from "./in-process.ts"
import { post } from "./post.ts"
import { FORWARD } from "./questions.ts"
import { rulesFile } from "./rules-file.ts"
import { openStranger } from "./stranger.ts"

// Runs the same code as the program, but in this process, so that a test can inspect the resources that the code
// uses.

const pem = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))
const TLS = ["--tls-cert", pem("server.pem"), "--tls-key", pem("server.key")]
const SERVICE = "sluice.v1.RateLimiter"

const DOCUMENTS = ["1", "other"].map(
  (service) => `service_id: ${service}\nrules: { name: all, limit: 100, window: 1 day }\n`,
)
const rules = rulesFile(DOCUMENTS.join("---\n"))
const folder = dirname(rules)
let running: RunningHere | undefined
/** Functions to run after a test, in reverse order. */
const opened: (() => unknown)[] = []
afterEach(async () => {
  await running?.stop()
  running = undefined
  for (const close of opened.splice(0).reverse()) await close()
})
async function run(
  args: readonly string[],
  metrics: Metrics = NO_METRICS,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningHere> {
  running = await startHere(args, env, metrics)
  await running.said("The service is ready.")
  return running
}
const lines = () => running?.lines() ?? []
const said = (msg: string): boolean => lines().some((line) => line.msg === msg)
const ask = (to: RunningHere, service: string) => post(to, FORWARD, { service })

describe("a service that runs", () => {
  it("reports its phase, every limiter and every request without rules at /metrics", async () => {
    const seen: string[] = []
    const places = await run(["--rules", rules], {
      ...NO_METRICS,
      onLimiter: (limiter, service) => {
        limiter.on("decision", ({ policy }) => seen.push(`${service} ${policy}`))
      },
      onUnknownService: () => seen.push("unknown"),
      onPhase: (phase) => seen.push(phase),
      read: async () => ({ contentType: "text/plain", text: "decisions 3\n" }),
      close: async () => void seen.push("closed"),
    })
    for (const service of ["1", "2", "1"]) await ask(places, service)
    expect(seen).toEqual(["ready", "1 all", "unknown", "1 all"])
    const metrics = await fetch(`${places.operations}/metrics`)
    expect([metrics.headers.get("content-type"), await metrics.text()]).toEqual([
      "text/plain",
      "decisions 3\n",
    ])
    await places.stop()
    expect(seen.slice(4)).toEqual(["draining", "closed"])
    running = undefined
  })

  it("responds to operators' requests, and no others, only on the operations port", async () => {
    const { operations, http } = await run(["--rules", rules])
    const statusOf = async (url: string, method = "GET") => (await fetch(url, { method })).status
    expect(await statusOf(`${operations}/livez`)).toBe(200)
    expect(await statusOf(`${operations}/readyz?verbose`)).toBe(200)
    expect(await statusOf(`${operations}/readyz`, "HEAD")).toBe(200)
    expect(await statusOf(`${operations}/metrics`)).toBe(200)
    expect(await statusOf(`${operations}/${SERVICE}/ShouldForwardRequest`)).toBe(404)
    expect(await statusOf(`${operations}/livez`, "POST")).toBe(405)
    for (const method of ["GET", "POST"]) {
      const answer = await fetch(`${operations}/sluice.v1.RateLimiter/ShowClient`, { method })
      expect(await answer.json()).toMatchObject({
        message: expect.stringContaining("Send calls to the HTTP port"),
      })
    }
    expect(await statusOf(`${http}/readyz`)).toBe(501)
  })

  it("counts connections above the limit, and logs them once", async () => {
    let refused = 0
    const metrics = { ...NO_METRICS, onRefusedConnection: () => void refused++ }
    const { http } = await run(["--rules", rules, "--max-connections", "1"], metrics)
    const { hostname, port } = new URL(http)
    for (const _ of [1, 2, 3]) {
      const socket = connect(Number(port), hostname).on("error", () => undefined)
      opened.push(() => socket.destroy())
      await new Promise((resolve) => socket.once("connect", resolve))
    }
    await until("two are refused", () => refused === 2)
    const told = lines().filter(
      ({ msg }) =>
        msg ===
        "Connections are refused, because --max-connections is reached. Raise this limit if the callers are legitimate.",
    )
    expect(told).toHaveLength(1)
  })

  it("logs and counts connections whose first request does not arrive in time", async () => {
    let late = 0
    const metrics = { ...NO_METRICS, onLateConnection: () => void late++ }
    const { http } = await run(["--rules", rules, "--arrival-time", "50ms"], metrics)
    const { hostname, port } = new URL(http)
    const socket = connect(Number(port), hostname).on("error", () => undefined)
    opened.push(() => socket.destroy())
    await until("it is ended", () => late === 1)
    expect(lines().filter(({ msg }) => msg.includes("--arrival-time"))).toEqual([
      expect.objectContaining({ peer: "127.0.0.1", count: 1 }),
    ])
  })

  it("responds with 500 if metrics cannot be read", async () => {
    const read = () => Promise.reject(new Error("no metrics"))
    const { operations } = await run(["--rules", rules], { ...NO_METRICS, read })
    expect((await fetch(`${operations}/metrics`)).status).toBe(500)
  })

  it("reports which rules of its file are invalid, and starts without them if allowed", async () => {
    const file = join(folder, "invalid.yaml")
    const invalid = "rules: { name: none, limit: 0, window: 1m }\n"
    const valid = "service_id: 2\nrules: { name: all, limit: 100, window: 1 day }\n"
    writeFileSync(file, `${invalid}---\nservice_id: 1\n${invalid}---\n${valid}`)
    await expect(run(["--rules", file])).rejects.toThrow(
      /has invalid rules\..*--allow-invalid-rules to start with only the valid rules\.\n.*\[0\]\.rules\.limit.*service "1" rules\.limit/s,
    )
    const places = await run(["--rules", file, "--allow-invalid-rules"])
    expect((await ask(places, "2")).body).toMatchObject({ policy: "all" })
    expect(lines().filter(({ msg }) => msg.includes("services without their own document"))).toEqual([
      expect.objectContaining({
        msg: expect.stringMatching(/\nAll of their rules are disabled until this is fixed\.$/),
      }),
    ])
    expect(lines().filter(({ msg }) => msg.startsWith("Some services have no rules in force"))).toEqual([
      expect.objectContaining({ wrong: 1, services: 2, example: "1" }),
    ])
  })

  it("logs that the valid rules are in force if others are invalid, and otherwise logs nothing", async () => {
    const file = join(folder, "partly.yaml")
    const rule = (name: string, limit: number) => `{ name: ${name}, limit: ${limit}, window: 1m }`
    writeFileSync(file, `rules: [${rule("none", 0)}, ${rule("all", 5)}]\n`)
    const places = await run(["--rules", file, "--allow-invalid-rules"])
    expect((await ask(places, "7")).body).toMatchObject({ policy: "all" })
    const told = () => lines().filter(({ msg }) => msg.includes("services without their own document"))
    expect(told()).toEqual([
      expect.objectContaining({
        msg: expect.stringMatching(/disabled until this is fixed; the valid ones are in force\.$/),
      }),
    ])
    await running?.stop()
    await run(["--rules", rules, "--allow-invalid-rules"])
    expect(told()).toEqual([])
  })

  it.each([
    [
      "for several services",
      "service_id: 1\nrules: { limit: 0, window: 1m }\n---\nservice_id: 2\nrules: { limit: 5, window: 0 }\n",
      /\nWrong rules in ".*":\n {2}- service "1" rules\.limit \(line 2, .*\): 0 is .*\n {2}- service "2" rules\.window \(line 5, .*\): 0 is .*$/,
    ],
    [
      "for services without their own rules",
      "rules: { limit: 0, window: 1m }\n---\nservice_id: 2\nrules: []\n",
      /\nWrong rules in ".*": \[0\]\.rules\.limit \(line 1, column 10\): 0 is .*$/,
    ],
  ])("does not start if a rule of its file is invalid: %s", async (_whose, text, told) => {
    const file = join(folder, "wrong.yaml")
    writeFileSync(file, text)
    await expect(run(["--rules", file])).rejects.toThrow(told)
  })

  it("logs which rule of a service is disabled if invalid rules are allowed", async () => {
    const file = join(folder, "one-wrong.yaml")
    const partly =
      "service_id: 2\nrules:\n  - { name: good, limit: 5, window: 1m }\n  - { name: bad, limit: 5, window: 1 mni }\n"
    writeFileSync(file, `service_id: 1\nrules: { limit: 5, window: 1m }\n---\n${partly}`)
    await expect(run(["--rules", file])).rejects.toThrow(
      /service "2" rules\[1\]\.window \(line 7, column \d+\): "1 mni" is not a window/,
    )
    const places = await run(["--rules", file, "--allow-invalid-rules"])
    expect((await ask(places, "2")).body).toMatchObject({ policy: "good" })
    expect(lines().filter(({ msg }) => msg.includes('service "2"'))).toEqual([
      expect.objectContaining({
        code: "SLUICE_RULES_REJECTED",
        msg: expect.stringMatching(/some rules are left out, because rule "bad" is invalid/),
      }),
    ])
  })

  it("starts without rules if its file contains none", async () => {
    const file = join(folder, "empty.yaml")
    writeFileSync(file, "rules: []\n")
    await run(["--rules", file])
  })

  it("leaves nothing open if it cannot start", async () => {
    const first = await run(["--rules", rules])
    const here = running
    const taken = first.http.replace("http://", "")
    await expect(run(["--rules", rules, "--http", taken])).rejects.toThrow(
      `HTTP cannot listen on ${taken}: the port is in use`,
    )
    await expect(run(["--rules", rules, "--grpc", first.grpc])).rejects.toThrow(
      `gRPC cannot listen on ${first.grpc}: the port is in use`,
    )
    const operations = first.operations.replace("http://", "")
    await expect(run(["--rules", rules, "--operations", operations])).rejects.toThrow(
      `operations cannot listen on ${operations}: the port is in use`,
    )
    await expect(run(["--rules", join(folder, "none.yaml")])).rejects.toThrow("none.yaml")
    await expect(
      run(["--table", "none", "--create-table", "--endpoint", "http://127.0.0.1:1"]),
    ).rejects.toThrow("ECONNREFUSED")
    const missing = ["--tls-cert", join(folder, "none.pem"), "--tls-key", rules]
    await expect(run(["--rules", rules, ...missing])).rejects.toThrow(
      /--tls-cert ".*none\.pem" cannot be read: ENOENT/,
    )
    const noPem = ["--tls-cert", rules, "--tls-key", rules]
    await expect(run(["--rules", rules, ...noPem])).rejects.toThrow(/--tls-cert ".*" cannot be used/)
    const noAuthority = ["--tls-client-ca", rules]
    await expect(run(["--rules", rules, ...TLS, ...noAuthority])).rejects.toThrow(
      /--tls-client-ca ".*" cannot be used/,
    )
    running = here
    expect((await ask(first, "1")).status).toBe(200)
  })

  it("logs why TLS handshakes fail, once for each reason", async () => {
    const { http } = await run(["--rules", rules, ...TLS])
    for (const _ of [1, 2]) await fetch(http.replace("https", "http")).catch(() => undefined)
    await until("it says so", () => said("A TLS handshake failed. Check the TLS settings of the caller."))
    const told = lines().filter(
      ({ msg }) => msg === "A TLS handshake failed. Check the TLS settings of the caller.",
    )
    expect(told).toMatchObject([{ level: "warn", reason: "ERR_SSL_HTTP_REQUEST", peer: "127.0.0.1" }])
  })

  it("checks Redis once for concurrent readiness requests, and detects a server that hangs", async () => {
    const redis = await startRedis()
    opened.push(() => redis.stop())
    const proxy = await startProxy(redis)
    opened.push(() => proxy.close())
    const env = { REDIS_URL: `redis://${proxy.host}:${proxy.port}` }
    const { operations } = await run(["--rules", rules, "--redis-prefix", "p:"], NO_METRICS, env)
    const look = async () => (await (await fetch(`${operations}/readyz`)).text()).includes('"reachable"')
    /** Requests /readyz until Redis is reachable. Returns the number of requests. */
    const looksUntilReachable = async () => {
      let looks = 0
      const isReachable = async () => {
        looks++
        return look()
      }
      await until("it is reachable", isReachable)
      return looks
    }
    const pings = async () =>
      Number(/cmdstat_ping:calls=(\d+)/.exec(String(await redis.command("INFO", "commandstats")))?.[1] ?? 0)
    await looksUntilReachable()
    const before = await pings()
    proxy.pause()
    expect(await Promise.all(Array.from({ length: 5 }, look))).toEqual([false, false, false, false, false])
    proxy.resume()
    const looks = await looksUntilReachable()
    // One ping serves all five requests. On a busy machine, the requests may arrive separately.
    expect((await pings()) - before - looks).toBeLessThan(5)
    proxy.refuse()
    proxy.cut()
    await until("it is gone", () =>
      said("There is no connection to Redis. The service keeps trying; check Redis and REDIS_URL."),
    )
    const whenGone = await pings()
    expect([await look(), await look()]).toEqual([false, false])
    await proxy.accept()
    await until("it is back", () => said("Connected to Redis again."))
    // The client does not send pings now that were requested during the outage.
    expect((await looksUntilReachable()) - ((await pings()) - whenGone)).toBeGreaterThanOrEqual(0)
  })

  it("leaves no connection to Redis open if it cannot start", async () => {
    const redis = await startRedis()
    opened.push(() => redis.stop())
    const proxy = await startProxy(redis)
    opened.push(() => proxy.close())
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve))
    opened.push(() => other.close())
    const taken = `127.0.0.1:${(other.address() as AddressInfo).port}`
    const env = { REDIS_URL: `redis://${proxy.host}:${proxy.port}` }
    await expect(run(["--rules", rules, "--http", taken], NO_METRICS, env)).rejects.toThrow("in use")
    await until("nothing is connected", () => proxy.connections === 0)
  })

  it("registers services in memory if they are not in the file and it counts in memory", async () => {
    const file = join(folder, "one.yaml")
    writeFileSync(file, "service_id: 1\nrules: { name: all, limit: 100, window: 1 day }\n")
    const register = async (env: Readonly<Record<string, string>>, service: string) => {
      const { grpc } = await run(["--rules", file], NO_METRICS, env)
      const client = openStranger(grpc, "sluice/v1/rate_limiter.proto", SERVICE)
      opened.push(() => client.close())
      const rules = [{ name: "own", limit: 3, window: "1 day" }]
      const registered = await client.call("RegisterService", { service, rules })
      const asked = await client.call("ShouldForwardRequest", { service })
      await running?.stop()
      return { registered, asked }
    }
    expect(await register({}, "shop")).toMatchObject({
      registered: { value: { version: 1 } },
      asked: { value: { policy: "own" } },
    })
    expect(await register({}, "1")).toMatchObject({
      registered: { error: { code: 9 } },
      asked: { value: { policy: "all" } },
    })
    // Rules cannot be registered here, because other processes that count in the same Redis would not learn of the
    // change.
    expect(await register({ REDIS_URL: "redis://127.0.0.1:1" }, "shop")).toMatchObject({
      registered: { error: { code: 9 } },
      // The service is neither in the file nor registered, which is not an error of the file.
      asked: { value: { should_forward: true, policy: "" } },
    })
  })

  it("loads rules from a table in a region, with or without explicit credentials", async () => {
    const server = await startDynamoDB()
    opened.push(() => server.stop())
    const table = ["--table", "rules", "--endpoint", server.endpoint]
    await run([...table, "--create-table"])
    await running?.stop()
    const env = { AWS_ACCESS_KEY_ID: "some", AWS_REGION: "eu-central-1" }
    for (const [name, value] of Object.entries({ ...env, AWS_SECRET_ACCESS_KEY: "other" })) {
      const was = process.env[name]
      process.env[name] = value
      opened.push(() => {
        if (was === undefined) delete process.env[name]
        else process.env[name] = was
      })
    }
    const places = await run([...table, "--region", "eu-west-1"], NO_METRICS, env)
    const client = openStranger(places.grpc, "sluice/v1/rate_limiter.proto", SERVICE)
    opened.push(() => client.close())
    const rules = [{ name: "all", limit: 3, window: "1 day" }]
    expect(await client.call("RegisterService", { service: "shop", rules })).toMatchObject({
      value: { version: 1 },
    })
    expect(await client.call("ShouldForwardRequest", { service: "shop" })).toMatchObject({
      value: { policy: "all", remaining: 2 },
    })
    await until("it is told", () => said("The rules of a service have changed."))
  })
})
