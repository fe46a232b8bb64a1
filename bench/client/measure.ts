import { spawn } from "node:child_process"
import { createServer } from "node:http"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { rateLimit } from "@sluice/express"
import express from "express"

export interface Scenario {
  readonly limit: number
  readonly windowMs: number
  readonly algorithm: "sliding-window" | "token-bucket"
}

export interface Sample {
  readonly sent: number
  readonly refused: number
  readonly failed: number
  /** The time until the last process has finished, and until the first one. */
  readonly wallMs: number
  readonly firstMs: number
  readonly p99Ms: number
}

const PROCESSES = 2
const WORKERS = 20
const CALLS = 300

/** Runs two processes of one client against a new server of Sluice. They share a key. */
export async function measure(client: string, { limit, windowMs, algorithm }: Scenario): Promise<Sample> {
  const app = express()
  let refused = 0
  let sent = 0
  app.use((_req, res, next) => {
    sent++
    res.once("finish", () => void (res.statusCode === 429 && refused++))
    next()
  })
  app.use(rateLimit({ limit, window: windowMs, algorithm }))
  app.get("/", (_req, res) => void res.json({ ok: true }))
  const server = createServer(app).listen(0, "127.0.0.1")
  await once(server, "listening")
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  try {
    const all = await Promise.all(Array.from({ length: PROCESSES }, () => run(client, url, limit, windowMs)))
    const latencies = all.flatMap(({ latenciesMs }) => latenciesMs).sort((a, b) => a - b)
    const walls = all.map(({ wallMs }) => wallMs)
    return {
      ...{ sent, refused, failed: all.reduce((sum, { failed }) => sum + failed, 0) },
      ...{ wallMs: Math.max(...walls), firstMs: Math.min(...walls) },
      p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
    }
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

interface Told {
  readonly failed: number
  readonly wallMs: number
  readonly latenciesMs: readonly number[]
}

async function run(client: string, url: string, limit: number, windowMs: number): Promise<Told> {
  const worker = new URL("./worker.ts", import.meta.url).pathname
  const args = ["--import", "tsx", worker, client, url, ...[limit, windowMs, CALLS, WORKERS].map(String)]
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
  let output = ""
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text))
  const [code] = await once(child, "close")
  if (code !== 0) throw new Error(`${client} ended with ${code}`)
  return JSON.parse(output)
}
