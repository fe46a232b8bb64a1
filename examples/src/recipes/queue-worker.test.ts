import { manualClock } from "@sluice/core/testing"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { createProcessor } from "./queue-worker.ts"

interface Job {
  readonly customer: string
  readonly data: unknown
}

const clock = manualClock()
let stop: AbortController
let queue: Job[]
/** Deferred jobs, with the time at which they return to the queue. */
let deferred: { readonly job: Job; readonly atMs: number }[]
let done: string[]
let failing: ReadonlySet<unknown>
/** Jobs that wait until `resume` is called, the jobs that run, and the most that ran at a time. */
let held: Promise<void> | undefined
let resume: () => void
let running: number
let mostRunning: number
let workers: Promise<void>[]
let process: ReturnType<typeof createProcessor>

const nextTurn = () => new Promise(setImmediate)

/** Removes jobs from the queue, one at a time, until the worker is stopped. */
async function work({ signal }: AbortController): Promise<void> {
  while (!signal.aborted) {
    const due = deferred.findIndex(({ atMs }) => atMs <= clock.now())
    const job = queue.shift() ?? (due >= 0 ? deferred.splice(due, 1)[0]?.job : undefined)
    if (job === undefined) await nextTurn()
    else await process(job).catch(() => undefined)
  }
}

beforeEach(() => {
  clock.resetAll()
  stop = new AbortController()
  queue = []
  deferred = []
  done = []
  failing = new Set()
  held = undefined
  running = 0
  mostRunning = 0
  process = createProcessor(
    async ({ customer, data }) => {
      mostRunning = Math.max(mostRunning, ++running)
      if (customer === "heavy") await held
      running--
      if (failing.has(data)) throw new Error("The data is wrong.")
      done.push(`${customer} ${data}`)
    },
    async (job, delayMs) => void deferred.push({ job, atMs: clock.now() + delayMs }),
    { clock },
  )
  workers = Array.from({ length: 3 }, () => work(stop))
})
afterEach(async () => {
  stop.abort()
  await Promise.all(workers)
})

function add(customer: string, jobs: number): void {
  queue.push(...Array.from({ length: jobs }, (_, data) => ({ customer, data })))
}
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await nextTurn()
}
const doneFor = (customer: string) => done.filter((job) => job.startsWith(customer)).length

describe("a queue worker", () => {
  it("runs ten jobs per minute for a customer, and defers the others by the exact wait", async () => {
    add("heavy", 25)
    await turns()
    expect([doneFor("heavy"), deferred.length]).toEqual([10, 15])
    expect(new Set(deferred.map(({ atMs }) => atMs - clock.now()))).toEqual(new Set([60_001]))
    clock.advance(60_000)
    await turns()
    expect(doneFor("heavy")).toBe(10)
    clock.advance(1)
    await turns()
    expect(doneFor("heavy")).toBe(11)
  })

  it("runs the jobs of other customers, however many jobs a heavy customer queues", async () => {
    add("heavy", 100)
    add("light", 3)
    await turns()
    await turns()
    expect(doneFor("light")).toBe(3)
  })

  it("runs two jobs of a customer at a time, and a third one when one of them has ended", async () => {
    held = new Promise((resolve) => {
      resume = resolve
    })
    add("heavy", 3)
    await turns()
    expect([running, doneFor("heavy")]).toEqual([2, 0])
    resume()
    await turns()
    expect([mostRunning, doneFor("heavy"), deferred.length]).toEqual([2, 3, 0])
  })

  it("does not hold a worker for longer than a second, and then defers the job", async () => {
    held = new Promise((resolve) => {
      resume = resolve
    })
    add("heavy", 3)
    add("light", 1)
    await turns()
    expect(doneFor("light")).toBe(0)
    clock.advance(1_000)
    await turns()
    expect([doneFor("light"), deferred.length]).toEqual([1, 1])
    resume()
    await turns()
    clock.advance(1_000)
    await turns()
    expect(doneFor("heavy")).toBe(3)
  })

  it("does not count a job that fails", async () => {
    failing = new Set([0, 1, 2, 3, 4])
    add("heavy", 15)
    await turns()
    expect([doneFor("heavy"), deferred.length]).toEqual([10, 0])
  })
})
