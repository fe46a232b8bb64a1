import { readFileSync, writeFileSync } from "node:fs"
import { request as httpRequest } from "node:http"
import { join } from "node:path"
import { runInNewContext } from "node:vm"
import { createLimiter } from "@sluice/core"
import { rateLimit } from "@sluice/express"
import express, { type Express } from "express"
import type { Redis } from "ioredis"
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest"
import { createApp } from "../../examples/src/recipes/login.ts"
import type { Surroundings } from "../../examples/src/surroundings.ts"
import { listening } from "../servers/listening.ts"
import { startServer } from "../servers/web-server.ts"
import { findWebServer } from "../servers/web-server-binary.ts"
import type { Block } from "./blocks.ts"
import { ROOT } from "./documents.ts"
import { rowsOf } from "./failures/guide.ts"
import { redisUrl, stopRedis } from "./preludes/redis.ts"
import { commandLines } from "./shell/words.ts"
import { blocksTestedBy } from "./shown.ts"
import { runTypeScript } from "./typescript/run.ts"

afterAll(stopRedis)

const DOCUMENT = "docs/production/proxies.md"
const [counted, requests] = blocksTestedBy("test/docs/proxies.test.ts", DOCUMENT, 2) as [Block, Block]
/** The lines of X-Forwarded-For in each of the three requests. */
const SENT = commandLines(requests.text).map(({ words }) =>
  words.filter((word) => word.startsWith("x-forwarded-for: ")).map((word) => word.slice(17)),
)
const ROWS = rowsOf(readFileSync(ROOT + DOCUMENT, "utf8"), "in front of the app")

const CLIENT = "203.0.113.7"
/** The forged entries that a client writes before its address. */
const FORGED = ["", "9.9.9.9, ", "9.9.9.9, 203.0.113.99, "]

/** The address that connects to the app, for the rows in which it is not a private address. */
const PEERS: Readonly<Record<string, string>> = {
  "AWS Network Load Balancer": CLIENT,
  Cloudflare: "172.71.95.118",
  "Cloudflare Tunnel": "127.0.0.1",
}

interface Options {
  readonly trustedProxies: number | string[]
  readonly clientIpHeader?: string
}

const optionsOf = (cell: string): Options => runInNewContext(`({${cell.replaceAll("`", "")}})`)

/** Returns the client that a limiter counts, and the messages that it logs. */
async function clientOf(options: Options, remoteAddress: string, headers: Record<string, string>) {
  const messages: string[] = []
  const log = (_fields: object, message: string): void => void messages.push(message)
  const limiter = createLimiter({
    ...{ ...options, limit: 100, window: "1 minute", notify: [1] },
    logger: { warn: log, error: log },
  })
  onTestFinished(() => limiter.close())
  let client: string | undefined
  limiter.on("near-limit", ({ partition }) => {
    client = partition
  })
  await limiter.decide({ method: "GET", url: "/", remoteAddress, headers })
  return { client, messages }
}

describe("the table of proxies", () => {
  it("contains more than 12 proxies", () => {
    expect(ROWS.length).toBeGreaterThan(12)
  })

  it.each(ROWS)(
    "shows settings that identify the client behind %s, whatever the client forges",
    async (name, _set, cell, received) => {
      const options = optionsOf(cell ?? "")
      const header = /^`(.*)`$/.exec(received ?? "")?.[1] ?? "1.2.3.4"
      for (const forged of FORGED) {
        const headers = {
          "x-forwarded-for": forged + header,
          ...(options.clientIpHeader !== undefined && { [options.clientIpHeader]: CLIENT }),
        }
        const seen = await clientOf(options, PEERS[name ?? ""] ?? "10.0.0.9", headers)
        expect(seen).toEqual({ client: CLIENT, messages: [] })
      }
    },
  )
})

/** The configurations of real proxies that listen on a port and forward to an app. */
const PROXIES: Readonly<
  Record<
    string,
    readonly ["nginx" | "haproxy" | "caddy", (port: number, app: string, line: string) => string]
  >
> = {
  nginx: [
    "nginx",
    (port, app, line) => `
events {}
http {
  access_log off;
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((each) => `${each}_temp_path temp/${each};`).join(" ")}
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://${app}; ${line} }
  }
}
`,
  ],
  HAProxy: [
    "haproxy",
    (port, app, line) => `
defaults
  mode http
  timeout connect 20s
  timeout client 20s
  timeout server 20s
  ${line}
listen web
  bind 127.0.0.1:${port}
  server app ${app}
`,
  ],
  "Caddy, Traefik": [
    "caddy",
    (port, app) => `{
  admin off
  auto_https off
}
http://127.0.0.1:${port} {
  reverse_proxy ${app}
}
`,
  ],
}

/** Starts a proxy in front of an app. Returns its port. */
async function startProxy(name: string, app: Express, line: string): Promise<number> {
  const [program, configOf] = PROXIES[name] ?? (() => expect.fail(`no configuration of ${name}`))()
  const url = await listening(app)
  const running = await startServer(await findWebServer(program), (folder, port) => {
    const path = join(folder, "proxy.conf")
    writeFileSync(path, configOf(port, new URL(url).host, line))
    if (program === "haproxy") return ["-db", "-f", path]
    if (program === "caddy") return ["run", "--config", path, "--adapter", "caddyfile"]
    const directives = "daemon off; master_process off; pid nginx.pid; error_log error.log;"
    return ["-p", folder, "-c", "proxy.conf", "-e", "error.log", "-g", directives]
  })
  onTestFinished(() => running.remove())
  return running.port
}

/** Sends a request with X-Forwarded-For lines from an address of this machine. */
function send(port: number, lines: readonly string[], localAddress = "127.0.0.2"): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = lines.length > 0 ? { "x-forwarded-for": [...lines] } : {}
    httpRequest({ host: "127.0.0.1", port, localAddress, headers, agent: false }, (response) => {
      response.resume().on("end", resolve)
    })
      .on("error", reject)
      .end()
  })
}

/** Creates an app that limits requests. `seen` receives the counted client and the header of each request. */
function limitedApp(options: Options): { readonly app: Express; readonly seen: unknown[][] } {
  const seen: unknown[][] = []
  const app = express()
  const limits = rateLimit({ limit: 100, window: "1 minute", ...options })
  onTestFinished(() => limits.limiter.close())
  limits.limiter.on("decision", (_decision, req, { counters }) => {
    seen.push([counters[0]?.partition, req.headers["x-forwarded-for"]])
  })
  app.use(limits, (_req, res) => void res.send("ok"))
  return { app, seen }
}

describe.each(Object.keys(PROXIES))("a real %s with the settings of its row", (name) => {
  const [, set = "", cell = "", received = ""] = ROWS.find(([first]) => first === name) ?? []
  const line = set === "nothing" ? "" : set.replaceAll("`", "")

  it("sends the header in the row, so the client cannot choose its address", async () => {
    const { app, seen } = limitedApp(optionsOf(cell))
    const port = await startProxy(name, app, line)
    expect(SENT.map(({ length }) => length)).toEqual([0, 1, 2])
    for (const lines of SENT) await send(port, lines)
    expect(seen.map(([client]) => client)).toEqual(["127.0.0.2", "127.0.0.2", "127.0.0.2"])
    expect(seen[1]?.[1]).toBe(received.replaceAll("`", "").replace(CLIENT, "127.0.0.2"))
  })
})

it("a real nginx without the documented line lets a client choose its address, as the page warns", async () => {
  const { app, seen } = limitedApp({ trustedProxies: 1 })
  const port = await startProxy("nginx", app, "")
  await send(port, ["1.2.3.4"])
  await send(port, [])
  expect(seen.map(([client]) => client)).toEqual(["1.2.3.4", "127.0.0.1"])
})

it("the login recipe limits a client that forges its address, across two processes behind nginx", async () => {
  const [shared, line] = blocksTestedBy("test/docs/proxies.test.ts", "docs/protect/login.md", 2) as [
    Block,
    Block,
  ]
  vi.stubEnv("REDIS_URL", await redisUrl())
  onTestFinished(() => void vi.unstubAllEnvs())
  const ports: number[] = []
  for (const _process of [1, 2]) {
    const { surroundings, client } = await runTypeScript(shared, {})
    onTestFinished(() => (client as Redis).disconnect())
    // A busy machine must not make a decision degraded.
    const patient = { ...(surroundings as Surroundings), storeTimeoutMs: 20_000 }
    ports.push(
      await startProxy(
        "nginx",
        createApp(async () => false, patient),
        line.text,
      ),
    )
  }
  const statuses: number[] = []
  for (let guess = 0; guess < 6; guess++) {
    const response = await fetch(`http://127.0.0.1:${ports[guess % 2]}/login`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-forwarded-for": `192.0.2.${guess}` },
      body: JSON.stringify({ email: "ann@example.com", password: "wrong" }),
    })
    statuses.push(response.status)
  }
  expect(statuses).toEqual([...Array(5).fill(401), 429])
})

it("the listener in docs/production/proxies.md logs the counted client and the X-Forwarded-For header", async () => {
  const app = express()
  const log = vi.spyOn(console, "log").mockReturnValue(undefined)
  onTestFinished(() => log.mockRestore())
  await runTypeScript(counted, { app, rateLimit })
  app.get("/", (_req, res) => void res.send("ok"))
  const port = Number(new URL(await listening(app)).port)
  await send(port, ["1.2.3.4, 203.0.113.7"])
  expect(log.mock.calls).toEqual([[CLIENT, "1.2.3.4, 203.0.113.7"]])
})
