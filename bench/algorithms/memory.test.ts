import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { everyNth, examples, pairs } from "../../test/test-length.ts"
import { startServer } from "../redis/server.ts"
import type { Filling } from "./filling.ts"
import { kindOf } from "./kinds.ts"
import { clientsInProcess, weighInProcess } from "./memory.ts"
import { RedisScale } from "./redis-memory.ts"

// The documents state the bytes of a client in a store with a million clients. A quarter or a sixteenth of the clients
// gives the same bytes per client, because a hash table doubles its size when it grows.
const CLIENTS = 1_000_000
const COPIES = CLIENTS / 16
/**
 * This many clients are enough for counters of a constant size. Other counters need a million clients, so that the
 * memory of the rest of the process does not distort the result.
 */
const IN_PROCESS = CLIENTS / examples(4, 1)

const FILLINGS = ["used up", "one request"] as const

/** How far a measurement may differ from the documents, because Redis and V8 allocate in steps. */
const TOLERANCE = 0.06

let scale: RedisScale
let stop: () => Promise<void>
beforeAll(async () => {
  vi.stubEnv("NODE_OPTIONS", "--import tsx")
  const server = await startServer()
  stop = () => server.stop()
  scale = await RedisScale.open(server, COPIES)
}, 60_000)
afterAll(async () => {
  vi.unstubAllEnvs()
  scale?.close()
  await stop?.()
})

const page = (path: string): string => readFileSync(new URL(`../../docs/${path}`, import.meta.url), "utf8")

/** Returns the numbers that the pattern captures in a document. */
function stated(path: string, pattern: RegExp): readonly number[] {
  const found = pattern.exec(page(path))
  if (found === null) throw new Error(`${path} does not match ${pattern}`)
  return found.slice(1).map((digits) => Number(digits.replace(",", "")))
}

const weighed = new Map<string, number>()

async function inRedis(kind: string, filling: Filling): Promise<number> {
  const key = `${kind}, ${filling}`
  const known = weighed.get(key) ?? (await scale.weigh(kindOf(kind), filling)).aClient
  weighed.set(key, known)
  return known
}

async function inProcess(name: string): Promise<number> {
  const kind = kindOf(name)
  return weighInProcess(kind, { clients: clientsInProcess(kind, "used up", IN_PROCESS), filling: "used up" })
}

function expectNear(measured: number, documented: number | undefined): void {
  expect(
    Math.abs(measured / (documented as number) - 1),
    `${measured} bytes, documented ${documented}`,
  ).toBeLessThan(TOLERANCE)
}

/** Each of these tests fills stores with up to a million clients. This only ends a test that would never end. */
const PATIENCE_MS = 240_000

describe("the documented memory of clients", () => {
  it(
    "is within 6 % of the measured memory for each algorithm in Redis",
    async () => {
      const rows: readonly [string, RegExp][] = [
        ["sliding-window", /nothing: `sliding-window` \| ([\d,]+) \|/],
        ["sliding-window-strict", /`onStoreFailure: "deny"` \| ([\d,]+) to ([\d,]+) \|/],
        ["sliding-window, buckets", /`buckets: 60` \| ([\d,]+) to ([\d,]+) \|/],
        ["sliding-log", /`sliding-log` \| ([\d,]+) to ([\d,]+) \|/],
        ["fixed-window", /at midnight UTC \| `fixed-window` \| ([\d,]+) \|/],
        ["fixed-window, first-hit", /`align: "first-hit"` \| ([\d,]+) \|/],
        ["token-bucket", /`token-bucket`, `burst` \| ([\d,]+) \|/],
        ["token-bucket, periodic", /`refill: "periodic"` \| ([\d,]+) \|/],
        ["leaky-bucket", /`leaky-bucket`, `burst` \| ([\d,]+) \|/],
      ]
      for (const [[kind, pattern], filling] of pairs(rows, FILLINGS)) {
        const [least, most = least] = stated("rules/algorithms.md", pattern)
        expectNear(await inRedis(kind, filling), filling === "one request" ? least : most)
      }
    },
    PATIENCE_MS,
  )

  it(
    "is within 6 % of the measured memory for a counter in a process",
    async () => {
      const [bytes] = stated("rules/algorithms.md", /In process memory, a client takes (\d+) bytes/)
      expectNear(await inProcess("sliding-window"), bytes)
      expect(stated("reference/figures.md", /in memory: Sluice (\d+), /)).toEqual([bytes])
    },
    PATIENCE_MS,
  )

  it("in the sizing guide is within 6 % of the measured memory of a million clients in Redis", async () => {
    const [gigabytes] = stated("production/sizing.md", /The clients need about ([\d.]+) GB/)
    expectNear(((await inRedis("sliding-window", "used up")) * CLIENTS) / 1e9, gigabytes)
  })

  const worked = [
    ["32 MB", "fixed-window", 1e6],
    ["12 GB", "sliding-log", 1e9],
    ["1.6 GB", "sliding-window, buckets", 1e9],
  ] as const
  it.each(everyNth(worked.length, worked))(
    "in the worked example of %s is within 6 % of the measured memory",
    async (example, kind, unit) => {
      const cells = new RegExp(String.raw`\*\*${example}\*\*.*\| ([\d.]+) .B \| ([\d.]+) .B \|`)
      const [redis, process] = stated("inside/worked-examples.md", cells)
      expectNear(((await inRedis(kind, "used up")) * CLIENTS) / unit, redis)
      expectNear(((await inProcess(kind)) * CLIENTS) / unit, process)
    },
    PATIENCE_MS,
  )
})
