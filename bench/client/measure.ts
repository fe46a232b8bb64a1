import { once } from "node:events"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { rateLimit } from "@sluice/express"
import express from "express"
import { type ContenderProcess, startContender } from "../contender-process.ts"
import { percentile } from "../report/statistics.ts"
import type { Allowed } from "./contenders.ts"
import type { LoadTask, ProcessResult, Task } from "./worker.ts"

/** The limit of a server. */
export interface Scenario extends Allowed {
  readonly algorithm: "sliding-window" | "token-bucket"
}

/** One run of a client. */
export interface Sample {
  /** The requests that the server received, and those of them that it refused. */
  readonly sent: number
  readonly refused: number
  /** Why each failed call failed. */
  readonly failures: readonly string[]
  /** The time until the last process has finished, and until the first one has. */
  readonly wallMs: number
  readonly firstMs: number
  readonly p99Ms: number
}

export const PROCESSES = 2
export const WORKERS = 20
export const CALLS = 300

const WORKER = new URL("./worker.ts", import.meta.url)

/** The processes of one client. They are started once, so that no run includes the start. */
export interface Contender {
  readonly name: string
  measure(scenario: Scenario): Promise<Sample>
  stop(): Promise<void>
}

export async function startClient(name: string): Promise<Contender> {
  const processes = Array.from({ length: PROCESSES }, () => startContender(WORKER, name))
  const stop = async () => void (await Promise.all(processes.map((each) => each.stop())))
  try {
    await Promise.all(processes.map((each) => each.ask({ calls: 0 } satisfies LoadTask)))
  } catch (error) {
    await stop()
    throw error
  }
  return { name, measure: (scenario) => measure(processes, scenario), stop }
}

/** Lets the processes of a client call a new server. They share its limit, because they have the same address. */
async function measure(processes: readonly ContenderProcess[], scenario: Scenario): Promise<Sample> {
  const counts = { sent: 0, refused: 0 }
  const server = await startServer(scenario, counts)
  const { limit, windowMs } = scenario
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const task: Task = { url, limit, windowMs, calls: CALLS, workers: WORKERS }
  try {
    const results = await Promise.all(processes.map((each) => each.ask<ProcessResult>(task)))
    const walls = results.map(({ wallMs }) => wallMs)
    return {
      ...counts,
      failures: results.flatMap(({ failures }) => failures),
      wallMs: Math.max(...walls),
      firstMs: Math.min(...walls),
      p99Ms: percentile(
        results.flatMap(({ latenciesMs }) => latenciesMs),
        0.99,
      ),
    }
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

async function startServer(
  { limit, windowMs, algorithm }: Scenario,
  counts: { sent: number; refused: number },
): Promise<Server> {
  const app = express()
  app.use((_request, response, next) => {
    counts.sent++
    response.once("finish", () => {
      if (response.statusCode === 429) counts.refused++
    })
    next()
  })
  app.use(rateLimit({ limit, window: windowMs, algorithm }))
  app.get("/", (_request, response) => void response.json({ ok: true }))
  const server = createServer(app).listen(0, "127.0.0.1")
  await once(server, "listening")
  return server
}
