import { AsyncLocalStorage } from "node:async_hooks"
import { setImmediate as nextTurn } from "node:timers/promises"
import {
  createLimiter,
  InvalidOptionError,
  type Limiter,
  type LimiterEvents,
  type LimiterOptions,
  type PolicyCheck,
} from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest"
import type { RecordOptions } from "./options.ts"
import { recordDecisions } from "./record-decisions.ts"
import type { DecisionSink, SinkRecord } from "./recorded-decision.ts"

const START_MS = Date.UTC(2024, 0, 1)
const QUIET = { warn() {}, error() {} }
const NOT_LOST = { bufferFull: 0, sinkFailed: 0, closed: 0 }

afterEach(() => {
  vi.restoreAllMocks()
})

/** Lets the recorder run until it waits for the clock or for the sink. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await nextTurn()
}

/** A sink whose batches the test settles. */
function slowSink() {
  const batches: SinkRecord[][] = []
  const waiting: { resolve(): void; reject(error: unknown): void }[] = []
  const sink: DecisionSink = (records) => {
    batches.push([...records])
    return new Promise<void>((resolve, reject) => {
      waiting.push({ resolve, reject })
    })
  }
  const settle = async (error?: unknown) => {
    const next = waiting.shift()
    if (error === undefined) next?.resolve()
    else next?.reject(error)
    await settled()
  }
  return { sink, batches, settle, sizes: () => batches.map(({ length }) => length) }
}

function open(
  sink: DecisionSink,
  options: RecordOptions = {},
  limits: Partial<LimiterOptions<{ remoteAddress?: string }>> = {},
) {
  const clock = manualClock()
  const warnings: string[] = []
  const log = (_fields: object, message: string) => void warnings.push(message)
  const limiter = createLimiter({
    ...{
      name: "all",
      limit: 1_000,
      window: "1 minute",
      field: "service",
      service: "shop",
      clock,
      logger: QUIET,
    },
    ...limits,
  } as LimiterOptions<{ remoteAddress?: string }>)
  const recorder = recordDecisions(limiter, sink, { clock, logger: { warn: log, error: log }, ...options })
  const decide = async (times: number) => {
    for (let i = 0; i < times; i++) await limiter.decide({ remoteAddress: "192.0.2.7" })
    await settled()
  }
  return { clock, limiter, recorder, decide, warnings }
}

describe("a record", () => {
  it("contains each rule's verdict on its client, and the units that the request needed", async () => {
    const records: SinkRecord[] = []
    const { clock, limiter, recorder } = open(
      (batch) => void records.push(...batch),
      {},
      {
        ...{ name: undefined, limit: undefined, window: undefined, field: undefined },
        rules: [
          { name: "client", field: "ip", limit: 3, window: "1 minute" },
          { name: "all", field: "service", limit: 100, window: "1 minute", cost: 2 },
          { name: "tried", field: "ip", limit: 1, window: "1 minute", shadow: true },
        ],
      },
    )
    const client = { remoteAddress: "192.0.2.7" }
    await limiter.decide(client, { cost: 2 })
    clock.advance(1_500)
    await limiter.decide(client, { cost: 2 })
    await recorder.close()
    const of = (policy: string, partition: string) => ({ policy, partition, shadow: policy === "tried" })
    expect(records).toEqual([
      {
        ...{ id: expect.stringMatching(/^[0-9a-f]{16}-0$/), kind: "decision" },
        ...{ timeMs: START_MS, service: "shop", allowed: true, degraded: false, policy: "client" },
        checks: [
          { ...of("client", "192.0.2.7"), cost: 2, taken: 2, allowed: true, limit: 3, remaining: 1 },
          { ...of("all", ""), cost: 4, taken: 4, allowed: true, limit: 100, remaining: 96 },
          { ...of("tried", "192.0.2.7"), cost: 2, taken: 0, allowed: false, limit: 1, remaining: 1 },
        ],
      },
      {
        ...{ id: expect.stringMatching(/^[0-9a-f]{16}-1$/), kind: "decision" },
        ...{ timeMs: START_MS + 1_500, service: "shop", allowed: false, refusal: "quota", degraded: false },
        policy: "client",
        checks: [
          { ...of("client", "192.0.2.7"), cost: 2, taken: 0, allowed: false, limit: 3, remaining: 1 },
          { ...of("all", ""), cost: 4, taken: 0, allowed: true, limit: 100, remaining: 96 },
          { ...of("tried", "192.0.2.7"), cost: 2, taken: 0, allowed: false, limit: 1, remaining: 1 },
        ],
      },
    ])
    expect(JSON.parse(JSON.stringify(records))).toEqual(records)
  })

  it("contains the units that were granted for the period, and those that a grant adds", async () => {
    const records: SinkRecord[] = []
    const rule = {
      name: "monthly",
      field: "ip",
      per: "month",
      timeZone: "Europe/Berlin",
      window: undefined,
    } as const
    const { limiter, recorder } = open((batch) => void records.push(...batch), {}, rule)
    const client = { remoteAddress: "192.0.2.7" }
    await limiter.grant(client, 5)
    await limiter.grant(client, -2)
    await limiter.decide(client)
    await recorder.close()
    const period = { startMs: Date.UTC(2023, 11, 31, 23), endMs: Date.UTC(2024, 0, 31, 23) }
    expect(records.map(({ kind, checks }) => [kind, checks])).toEqual([
      ["grant", [{ policy: "monthly", partition: "192.0.2.7", taken: 0, added: 5, ...period }]],
      ["grant", [{ policy: "monthly", partition: "192.0.2.7", taken: 0, added: -2, ...period }]],
      ["decision", [expect.objectContaining({ taken: 1, limit: 1_003, granted: 3, ...period })]],
    ])
  })

  it("is written for every call that decides, but not for a peek or a skipped request", async () => {
    const records: SinkRecord[] = []
    const { limiter, recorder } = open(
      (batch) => void records.push(...batch),
      {},
      {
        skip: ({ remoteAddress }) => remoteAddress === undefined,
      },
    )
    const client = { remoteAddress: "192.0.2.7" }
    await limiter.decide(client)
    await limiter.acquire(client)
    await limiter.takeUpTo(client, 7)
    await limiter.peek(client)
    await limiter.decide({})
    await recorder.close()
    expect(records.map(({ checks }) => checks[0]?.taken)).toEqual([1, 1, 7])
  })

  it("contains the units of an earlier step, which stay taken although the request was refused", async () => {
    const { limiter } = open(() => undefined)
    const decision = await limiter.peek({})
    const [check] = decision.checks as [PolicyCheck]
    let emit: ((...args: LimiterEvents<object>["decision"]) => void) | undefined
    const on = (name: string, listener: typeof emit) => {
      if (name === "decision") emit = listener
    }
    const records: SinkRecord[] = []
    const steps = { ...{ on, off() {}, decide() {} }, status: limiter.status }
    const recorder = recordDecisions(steps as unknown as Limiter, (batch) => void records.push(...batch))
    const call = { operation: "decide", durationMs: 0, counters: [] } as const
    const checks = [{ ...check, taken: 3 }, check]
    emit?.({ ...decision, allowed: false, checks }, {}, call)
    await recorder.close()
    expect(records.map((record) => record.checks.map(({ taken }) => taken))).toEqual([[3, 0]])
  })

  it("contains its time in whole milliseconds, and all fields even without rules", async () => {
    const records: SinkRecord[] = []
    const rules = { ...{ name: undefined, limit: undefined, window: undefined, field: undefined }, rules: [] }
    const clock = { now: () => START_MS + 0.75 }
    const { limiter, recorder } = open((batch) => void records.push(...batch), { clock }, rules)
    await limiter.decide({})
    await recorder.close()
    const decision = { allowed: true, degraded: false, policy: "", checks: [] }
    expect(records).toMatchObject([{ kind: "decision", timeMs: START_MS, service: "shop", ...decision }])
  })
})

describe("records are written", () => {
  it("as soon as a batch is full, and otherwise after the interval", async () => {
    const { sink, sizes, settle } = slowSink()
    const { clock, decide } = open(sink, { batchSize: 3, intervalMs: 200 })
    await decide(2)
    clock.advance(199)
    await settled()
    expect(sizes()).toEqual([])
    await decide(1)
    expect(sizes()).toEqual([3])
    await settle()
    await decide(1)
    clock.advance(199)
    await settled()
    expect(sizes()).toEqual([3])
    clock.advance(1)
    await settled()
    expect(sizes()).toEqual([3, 1])
  })

  it("one batch after the other, in the order of the decisions", async () => {
    const { sink, batches, sizes, settle } = slowSink()
    const { clock, limiter, recorder } = open(sink, { batchSize: 3 })
    for (let n = 0; n < 8; n++) {
      clock.advance(1)
      await limiter.decide({})
    }
    await settled()
    expect(sizes()).toEqual([3])
    await settle()
    expect(sizes()).toEqual([3, 3])
    expect(recorder.status).toEqual({ waiting: 5, written: 3, lost: NOT_LOST })
    await settle()
    clock.advance(1_000)
    await settle()
    await settle()
    expect(batches.flat().map(({ timeMs }) => timeMs - START_MS)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(recorder.status).toEqual({ waiting: 0, written: 8, lost: NOT_LOST })
  })

  it("after the decision has been returned, and outside the context of its request", async () => {
    const contexts = new AsyncLocalStorage<string>()
    const order: unknown[] = []
    const { limiter } = open(() => void order.push(["written", contexts.getStore()]), { batchSize: 1 })
    await contexts.run("request", async () => {
      await limiter.decide({})
      order.push("decided")
    })
    await settled()
    expect(order).toEqual(["decided", ["written", undefined]])
  })

  it("immediately if the clock cannot wait", async () => {
    const { sink, sizes } = slowSink()
    const clock = { now: () => START_MS, wait: () => Promise.reject(new Error("no timers")) }
    const { decide } = open(sink, { clock })
    await decide(1)
    expect(sizes()).toEqual([1])
  })
})

describe("records are lost", () => {
  it("while too many records wait for the sink, without delaying any decision", async () => {
    const { sink, sizes, settle } = slowSink()
    const { decide, limiter, recorder, warnings } = open(sink, { maxWaiting: 4, batchSize: 2 })
    await decide(10)
    expect(recorder.status).toEqual({ waiting: 4, written: 0, lost: { ...NOT_LOST, bufferFull: 6 } })
    expect((await limiter.peek({})).remaining).toBe(990)
    expect(warnings).toEqual([
      expect.stringMatching(
        /^The record of a decision was lost: 4 records wait, because the sink is too slow\. Check the sink of recordDecisions\(\)\./,
      ),
    ])
    await settle()
    await decide(3)
    expect(sizes()).toEqual([2, 2])
    expect(recorder.status).toEqual({ waiting: 4, written: 2, lost: { ...NOT_LOST, bufferFull: 7 } })
  })

  it("if the sink rejects their batch, but the records of other batches are written", async () => {
    const { sink, settle } = slowSink()
    const { decide, recorder, warnings } = open(sink, { batchSize: 2 })
    await decide(4)
    await settle(new Error("disk full at postgres://user:secret@db/"))
    await settle()
    expect(recorder.status).toEqual({ waiting: 0, written: 2, lost: { ...NOT_LOST, sinkFailed: 2 } })
    expect(warnings).toEqual([
      expect.stringContaining("The records of 2 decisions were lost: the sink failed: Error: disk full"),
    ])
    expect(warnings[0]).not.toContain("secret")
  })

  it("if the sink throws for their batch", async () => {
    const { decide, recorder } = open(
      () => {
        throw new Error("broken")
      },
      { batchSize: 2 },
    )
    await decide(4)
    expect(recorder.status).toEqual({ waiting: 0, written: 0, lost: { ...NOT_LOST, sinkFailed: 4 } })
  })

  it("and their number is logged again a minute later", async () => {
    const { clock, decide, warnings } = open(() => Promise.reject(new Error("down")), { batchSize: 1 })
    await decide(5)
    expect(warnings).toHaveLength(1)
    clock.advance(60_000)
    await settled()
    expect(warnings[1]).toMatch(/^The records of 4 decisions were lost: the sink failed: Error: down\./)
  })
})

describe("close()", () => {
  it("writes waiting records immediately, and records no later decision", async () => {
    const { sink, sizes, settle } = slowSink()
    const { decide, limiter, recorder } = open(sink, { batchSize: 3 })
    await decide(4)
    const closed = recorder.close()
    await settle()
    expect(sizes()).toEqual([3, 1])
    const now = vi.spyOn(performance, "now")
    await limiter.decide({})
    expect(now).not.toHaveBeenCalled()
    await settle()
    await closed
    expect(recorder.status).toEqual({ waiting: 0, written: 4, lost: NOT_LOST })
    await recorder.close()
    expect(sizes()).toEqual([3, 1])
  })

  it("resolves at its deadline, and counts unconfirmed records as lost", async () => {
    const { sink, settle, sizes } = slowSink()
    const { decide, recorder, warnings } = open(sink, { batchSize: 3 })
    await decide(5)
    await recorder.close({ withinMs: 1 })
    const status = { waiting: 0, written: 0, lost: { ...NOT_LOST, closed: 5 } }
    expect(recorder.status).toEqual(status)
    expect(warnings).toEqual([
      expect.stringContaining(
        "The records of 5 decisions were lost: the sink did not write them within 1 ms.",
      ),
    ])
    await recorder.close({ withinMs: 1 })
    expect(warnings).toHaveLength(1)
    // A batch that ends later is not counted twice, and no further batch is written.
    await settle()
    expect(sizes()).toEqual([3])
    expect(recorder.status).toEqual(status)
  })

  it("does not call the sink again if the deadline passes between two batches", async () => {
    const { sink, settle, sizes } = slowSink()
    const { decide, recorder } = open(sink, { batchSize: 1 })
    await decide(2)
    vi.useFakeTimers({ toFake: ["setTimeout", "setImmediate", "clearTimeout", "clearImmediate"] })
    onTestFinished(() => void vi.useRealTimers())
    const closed = recorder.close({ withinMs: 5 })
    const settled = settle()
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    vi.advanceTimersByTime(6)
    await Promise.all([settled, closed])
    expect(sizes()).toEqual([1])
    expect(recorder.status).toEqual({ waiting: 0, written: 1, lost: { ...NOT_LOST, closed: 1 } })
  })

  it("rejects invalid options, and can then be called again", async () => {
    const { recorder } = open(() => undefined)
    await expect(recorder.close({ withinMs: 0 })).rejects.toThrow("withinMs: 0 is not an interval")
    await expect(recorder.close({ within: 5 } as never)).rejects.toThrow(/within: is not an option of close/)
    await recorder.close()
  })
})

describe("recordDecisions", () => {
  const limiter = createLimiter({ limit: 1, window: "1 minute" })
  const sink = () => undefined

  it.each<[string, readonly unknown[], RegExp]>([
    ["no limiter", [undefined, sink], /limiter: is missing; accepted: a limiter that/],
    ["a function instead of a limiter", [() => undefined, sink], /limiter: a function is not a limiter/],
    ["no sink", [limiter], /sink: is missing; accepted: a function .* jsonLinesSink/],
    ["a path instead of a sink", [limiter, "a.jsonl"], /sink: "a.jsonl" is not a sink/],
    [
      "options that are not an object",
      [limiter, sink, 5],
      /5 is not an options object; accepted: an object with maxWaiting/,
    ],
    [
      "a buffer of 0 records",
      [limiter, sink, { maxWaiting: 0 }],
      /maxWaiting: 0 is not a valid number of records/,
    ],
    ["a fractional batch", [limiter, sink, { batchSize: 1.5 }], /batchSize: 1.5 is not a valid number/],
    ["an interval of 0 ms", [limiter, sink, { intervalMs: 0 }], /intervalMs: 0 is not an interval/],
    ["an invalid clock", [limiter, sink, { clock: 5 }], /clock: 5 is not a clock/],
    ["a misspelled option", [limiter, sink, { batchsize: 5 }], /did you mean "batchSize"\?/],
  ])("throws for %s", (_what, args, message) => {
    expect(() => recordDecisions(...(args as Parameters<typeof recordDecisions>))).toThrow(InvalidOptionError)
    expect(() => recordDecisions(...(args as Parameters<typeof recordDecisions>))).toThrow(message)
  })

  it("reports all invalid arguments together", () => {
    expect(() => recordDecisions(null as never, null as never, { maxWaiting: -1 })).toThrow(
      /limiter: .*sink: .*maxWaiting: /s,
    )
  })
})

it("a batch is never larger than the buffer", async () => {
  const { sink, sizes } = slowSink()
  const { decide } = open(sink, { maxWaiting: 3 })
  await decide(3)
  expect(sizes()).toEqual([3])
})
