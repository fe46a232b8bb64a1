import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { blocksTestedBy } from "../docs/shown.ts"
import { freePort } from "../servers/free-port.ts"
import { type RedisFront, startFront, TOKEN } from "../servers/redis-over-http.ts"
import { type RedisServer, startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import type { Running } from "./folder.ts"
import { NODE_24 } from "./nodes.ts"
import { Project } from "./project.ts"
import { findRuntime } from "./runtimes.ts"

// Runs limiters in workerd, the runtime of Cloudflare Workers, without compatibility flags.

const [RECIPE] = blocksTestedBy("test/packages/workers.check.ts", "docs/start/fetch.md", 1)

const SOURCED = `{ service_id: "api", rules: [
  { name: "lined", throttle: { kind: "queue" } },
  { name: "elastic", throttle: { kind: "elastic" } },
  { name: "soft", throttle: { kind: "soft", percent: 50, queue: {} } },
  { name: "bucket", window: "1 second", algorithm: "leaky-bucket", throttle: { kind: "queue", max_waiting: 5 } },
  { name: "busy", window: undefined, limit: undefined, concurrent: 2, hold: "10 seconds" },
].map((rule) => ({ field: "service", limit: 2, window: "10 seconds", match: { path: "/sourced/" + rule.name }, ...rule })) }`

/**
 * The recipe with a shorter limit, and a response that shows what the handler receives and the errors of some rules.
 * Requests below /sourced/ have the rules of a source instead.
 */
const IN_MEMORY = `import { liveRules, readRuleDocument } from "@sluice/rules"
const greeting = (env, ctx) => env.GREETING + typeof ctx.waitUntil
const clientAddress = () => undefined
const errorOf = (throttle) => {
  try {
    rateLimit({ limit: 9, window: "1 minute", name: "waiting", throttle, clientAddress })
  } catch (error) {
    return error.message
  }
}
const errors = [errorOf({ kind: "elastic" }), errorOf({ kind: "queue" }), errorOf({ kind: "soft", percent: 50, queue: {} })]
const loaded = readRuleDocument(${SOURCED})
const rules = liveRules({ loadSync: () => loaded, load: async () => loaded })
const sourced = rateLimit({ service: "api", rules, clientAddress })
const either = (handler) => {
  const wrapped = [limit.wrap(handler), sourced.wrap(handler)]
  return (request, ...others) => wrapped[Number(request.url.includes("/sourced/"))](request, ...others)
}
${(RECIPE?.text ?? "")
  .replace("limit: 100", "limit: 2")
  .replace("1 minute", "1 second")
  .replace("fetch: limit.wrap(", "fetch: either(")
  .replace('"hello"', 'request.url.endsWith("/errors") ? errors.join("\\n") : greeting(env, ctx)')}`

const [WITH_REDIS] = blocksTestedBy("test/packages/workers.check.ts", "docs/production/redis.md", 1)

/** The recipe with a rule whose units are refunded after a response, and without the cache of refusals. */
const IN_REDIS = (WITH_REDIS?.text ?? "")
  .replace("redisStore({ client })", "redisStore({ client, denyCacheMs: 0 })")
  .replace("limit: 100", "limit: 50, refundWhen: (_request, status) => status === 404")
  .replace(
    'new Response("hello")',
    'new Response("hello", { status: request.url.endsWith("/no") ? 404 : 200 })',
  )

describe("a Cloudflare Worker", () => {
  const project = new Project(NODE_24)
  let running: Running
  let redis: RedisServer
  let front: RedisFront
  let port: number

  beforeAll(async () => {
    const [workerd] = await Promise.all([
      findRuntime("workerd"),
      project.install("core", "fetch", "redis", "rules", "esbuild@0.28.2"),
    ])
    redis = await startRedis()
    front = await startFront(redis.port)
    project.write("build.cjs", BUILD)
    project.write("memory.ts", IN_MEMORY)
    project.write("redis.ts", IN_REDIS)
    await project.run("node", "build.cjs", "memory", "redis")
    port = await freePort()
    project.write("config.capnp", configOf(port, front.url, ["memory", "redis", "redis"]))
    running = project.start(workerd, ["serve", "config.capnp"])
    await Promise.race([
      until("workerd listens", async () => (await fetch(urlOf(0), { method: "OPTIONS" })).ok),
      running.ended.then(({ stderr }) => expect(stderr).toBe("workerd runs")),
    ])
  })
  afterAll(async () => {
    await running?.stop()
    await front?.stop()
    await redis?.stop()
    project.remove()
  })

  const urlOf = (nth: number): string => `http://127.0.0.1:${port + nth}/`
  const ask = (nth: number, address: string, path = ""): Promise<Response> =>
    fetch(urlOf(nth) + path, { headers: { "CF-Connecting-IP": address } })
  const remainingOf = ({ headers }: Response): number =>
    Number(/;r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1])

  it("counts clients by the address that Cloudflare reports, and admits them again after Retry-After", async () => {
    const [one, two, three] = [
      await ask(0, "192.0.2.1"),
      await ask(0, "192.0.2.1"),
      await ask(0, "192.0.2.1"),
    ]
    expect([one.status, two.status, three.status]).toEqual([200, 200, 429])
    expect(await one.text()).toBe("hello function")
    expect((await ask(0, "192.0.2.2")).status).toBe(200)
    const seconds = Number(three.headers.get("retry-after"))
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
    expect((await ask(0, "192.0.2.1")).status).toBe(200)
  })

  it("rejects rules whose requests would wait for each other", async () => {
    expect((await (await ask(0, "192.0.2.3", "errors")).text()).split("\n")).toEqual([
      expect.stringContaining("throttle: is elastic without a signal"),
      expect.stringContaining("throttle: holds requests in a line, which would hang in a Cloudflare Worker"),
      expect.stringContaining("throttle: holds requests in a line"),
    ])
  })

  it("refuses requests that a rule of a source would hold, and logs that the rule needs Node", async () => {
    const statuses: Record<string, number[]> = {}
    for (const name of ["lined", "elastic", "soft", "bucket"]) {
      const asked = await Promise.all(Array.from({ length: 4 }, () => ask(0, "192.0.2.4", `sourced/${name}`)))
      statuses[name] = asked.map(({ status }) => status).sort((one, other) => one - other)
    }
    expect(statuses).toEqual({
      lined: [200, 200, 429, 429],
      elastic: [200, 200, 429, 429],
      soft: [200, 200, 200, 429],
      bucket: [200, 200, 429, 429],
    })
    expect((await ask(0, "192.0.2.4", "sourced/busy")).status).toBe(200)
    const logged = [...running.output().matchAll(/\[SLUICE_RULE_NEEDS_NODE\] SluiceWarning: Rule "(\w+)"/g)]
    expect(logged.map(([, name]) => name)).toEqual(["lined", "elastic", "soft", "bucket", "busy"])
    expect(running.output()).toContain("cannot renew permits, so a request counts for 10000 ms at most")
  })

  it("logs warnings of the limiter", async () => {
    await fetch(urlOf(0))
    await until("the warning is logged", () => /SLUICE_\w+/.test(running.output()))
    expect(running.output()).toContain("[SLUICE_ADDRESS_UNKNOWN] SluiceWarning: ")
  })

  it("counts concurrent requests of two isolates exactly, over HTTP, while other requests are canceled", async () => {
    // Start both isolates.
    await Promise.all([ask(1, "192.0.2.8"), ask(2, "192.0.2.8")])
    const canceled = new AbortController()
    const { signal } = canceled
    const headers = { "CF-Connecting-IP": "192.0.2.9" }
    const gone = Array.from({ length: 20 }, (_, i) => fetch(urlOf(1 + (i % 2)), { headers, signal }))
    const all = Array.from({ length: 60 }, (_, i) => ask(1 + (i % 2), "192.0.2.1"))
    canceled.abort()
    await Promise.allSettled(gone)
    const responses = await Promise.all(all)
    const admitted = responses.filter(({ status }) => status === 200)
    expect(admitted.map(remainingOf).sort((one, other) => one - other)).toEqual([...Array(50).keys()])
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(10)
    expect(running.output()).not.toMatch(/SLUICE_DEGRADED|hung|different request/)
  })

  it("refunds units after the response has been sent", async () => {
    for (let i = 0; i < 3; i++) expect((await ask(1, "192.0.2.2", "no")).status).toBe(404)
    await until("all units are refunded", async () => remainingOf(await ask(2, "192.0.2.2", "no")) === 49)
  })

  it("decides without Redis while its front is gone, logs it once, and counts in Redis again afterwards", async () => {
    const [, frontPort] = front.url.split(/:(?=\d+$)/)
    await front.stop()
    const statuses = []
    for (let i = 0; i < 12; i++) statuses.push((await ask(1, "192.0.2.3")).status)
    expect(statuses).toEqual(Array(12).fill(200))
    expect(running.output().match(/\[SLUICE_DEGRADED\]/g)).toHaveLength(1)
    front = await startFront(redis.port, Number(frontPort))
    // The other isolate has counted nothing of this client.
    await until("Redis counts", async () => {
      await ask(1, "192.0.2.3")
      return front.commands.some(([, , , key]) => key?.endsWith("192.0.2.3"))
    })
    expect(remainingOf(await ask(2, "192.0.2.3"))).toBeLessThan(49)
  })
})

/** Creates a bundle. wrangler replaces calls of `require` with a plugin instead. */
const BUILD = `
  const entryPoints = process.argv.slice(2).map((name) => name + ".ts")
  require("esbuild").buildSync({ entryPoints, bundle: true, platform: "node", format: "esm", outdir: ".", logLevel: "error",
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire('/');" } })`

/** The service that sends the requests of Workers, here to this machine. */
const INTERNET = '(name = "internet", network = (allow = ["private", "local"]))'

/** Returns the configuration of workerd for these Workers, which listen on consecutive ports. */
function configOf(port: number, url: string, workers: readonly string[]): string {
  const services = workers.map(
    (name, nth) => `(name = "${name}-${nth}", worker = (
      modules = [(name = "${name}", esModule = embed "${name}.js")],
      bindings = [(name = "GREETING", text = "hello "), (name = "UPSTASH_REDIS_REST_URL", text = "${url}"),
        (name = "UPSTASH_REDIS_REST_TOKEN", text = "${TOKEN}")],
      compatibilityDate = "2026-08-04"))`,
  )
  const sockets = workers.map(
    (name, nth) =>
      `(name = "${name}-${nth}", address = "127.0.0.1:${port + nth}", http = (), service = "${name}-${nth}")`,
  )
  return `using Workerd = import "/workerd/workerd.capnp";
    const config :Workerd.Config = (services = [${services}, ${INTERNET}], sockets = [${sockets}]);\n`
}
