import { setTimeout as sleep } from "node:timers/promises"
import type { Store } from "@sluice/core"
import type { Policy } from "@sluice/core/stores"
import { redisStore } from "@sluice/redis"
import { leasedStore, writeBackStore } from "@sluice/scale"
import { RateLimiterRedis } from "rate-limiter-flexible"
import { printTable, printWanted } from "../report/table.ts"
import { connect } from "./connect.ts"
import { callsSince, type RedisServer, usageOf } from "./server.ts"

const PROCESSES = 4
const LIMIT = 5_000
const WINDOW_MS = 60_000
/** All requests arrive within this time, at a steady rate. */
const BURST_MS = 1_000
const REQUESTS = 10 * LIMIT
const PATIENCE_MS = 2_000
const CALLS = ["evalsha", "eval"]

const SERVICE: Policy = {
  name: "service",
  counter: "k3JxW0aQ7rBn5TzE",
  algorithm: "sliding-window",
  limit: LIMIT,
  windowMs: WINDOW_MS,
  align: "epoch",
}

/** The limiter of one process. Resolves to true if the limiter admits a request. */
interface Process {
  admits(): boolean | Promise<boolean>
  stop(): void | Promise<void>
}

type Connect = (port: number) => Promise<Process>

interface Contender {
  readonly name: string
  readonly connect: Connect
  /** The most units that may be admitted, as a multiple of the limit. */
  readonly most: number
}

// Within two settling intervals, the processes together may grant more than the limit, but no process alone does.
// docs/scale/leases.md states the bound.
const CONTENDERS: readonly Contender[] = [
  { name: "sluice, each request", connect: counting((store) => store), most: 1 },
  { name: "sluice, leased", connect: counting((store) => leasedStore(store)), most: 1 },
  { name: "sluice, write-back 100 ms", connect: counting((store) => writeBackStore(store)), most: 3 },
  {
    name: "sluice, write-back 1 s",
    connect: counting((store) => writeBackStore(store, { settleMs: 1_000 })),
    most: PROCESSES,
  },
  { name: "rate-limiter-flexible", connect: flexible, most: 1 },
]

export interface Flash {
  readonly name: string
  readonly most: number
  /** The units admitted, divided by the limit. */
  readonly admitted: number
  /** Number of Redis calls per request, including calls after the burst. */
  readonly calls: number
}

/** Measures how many units four processes admit together when ten times the limit arrives within a second. */
export async function measureFlash(server: RedisServer): Promise<readonly Flash[]> {
  const results: Flash[] = []
  for (const { name, connect, most } of CONTENDERS) {
    await server.command("FLUSHALL", "SYNC")
    const processes: Process[] = []
    for (let i = 0; i < PROCESSES; i++) processes.push(await connect(server.port))
    await enoughOfWindow()
    const before = await usageOf(server)
    const admitted = await burst(processes)
    for (const process of processes) await process.stop()
    const calls = callsSince(before, await usageOf(server), CALLS) / REQUESTS
    results.push({ name, most, admitted: admitted / LIMIT, calls })
  }
  return results
}

/** Prints a table of the contenders, and the targets. */
export function printFlash(flashes: readonly Flash[]): void {
  printTable(
    `${PROCESSES} processes, ${REQUESTS} requests in ${BURST_MS} ms, a limit of ${LIMIT} in ${WINDOW_MS} ms`,
    ["", "admitted, times the limit", "Redis calls a request"],
    flashes.map(({ name, admitted, calls }) => [name, admitted.toFixed(3), calls.toFixed(4)]),
  )
  console.log()
  for (const { name, admitted, most } of flashes) {
    if (!name.startsWith("sluice")) continue
    printWanted(
      `flash, 10 times the limit in a second: ${name}, admitted / limit`,
      admitted,
      admitted <= most,
      `at most ${most}`,
    )
  }
}

async function burst(processes: readonly Process[]): Promise<number> {
  let admitted = 0
  const pending: Promise<void>[] = []
  const count = (isAdmitted: boolean): void => {
    if (isAdmitted) admitted++
  }
  const startMs = performance.now()
  for (let sent = 0; sent < REQUESTS; ) {
    const due = Math.min(REQUESTS, ((performance.now() - startMs) * REQUESTS) / BURST_MS)
    for (; sent < due; sent++) {
      const answer = (processes[sent % PROCESSES] as Process).admits()
      if (typeof answer === "boolean") count(answer)
      else pending.push(answer.then(count))
    }
    await sleep(1)
  }
  await Promise.all(pending)
  return admitted
}

/**
 * Waits until enough time for the burst remains in the server's window. The server runs on the same machine, so this
 * process and the server share a clock.
 */
async function enoughOfWindow(): Promise<void> {
  const leftMs = WINDOW_MS - (Date.now() % WINDOW_MS)
  if (leftMs < 5 * BURST_MS) await sleep(leftMs)
}

function counting(inFront: (store: Store) => Store): Connect {
  return async (port) => {
    const client = await connect(port)
    const store = inFront(redisStore({ client, timeoutMs: PATIENCE_MS }))
    const check = { policy: SERVICE, partition: "", cost: 1, shadow: false }
    return {
      admits() {
        const results = store.take([check])
        return "then" in results ? results.then(({ granted }) => granted) : results.granted
      },
      async stop() {
        await store.close?.()
        client.disconnect()
      },
    }
  }
}

async function flexible(port: number): Promise<Process> {
  const storeClient = await connect(port)
  const limiter = new RateLimiterRedis({ storeClient, points: LIMIT, duration: WINDOW_MS / 1_000 })
  return {
    admits: () =>
      limiter.consume("service").then(
        () => true,
        (reason: unknown) => {
          if (reason instanceof Error) throw reason
          return false
        },
      ),
    stop: () => storeClient.disconnect(),
  }
}
