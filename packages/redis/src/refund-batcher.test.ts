import { setImmediate as nextTurn } from "node:timers/promises"
import type { StoreUnavailableError } from "@sluice/core"
import type { Refund } from "@sluice/core/stores"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Node } from "./node/node.ts"
import { RefundBatcher } from "./refund-batcher.ts"
import { REFUND } from "./scripts.ts"
import { AskedServer } from "./testing/asked-server.ts"
import { FIRST_HIT as POLICY } from "./testing/first-hit.ts"

const NOW_MS = 1_700_000_000_000
const SILENT = "Redis did not respond in time."
const DOWN = "Redis failed: ERR no. The store keeps trying in the background."

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }))
afterEach(() => void vi.useRealTimers())

/** Creates a refund batcher for a server whose time is known. */
async function startBatcher({ inBackground = false } = {}) {
  vi.advanceTimersByTime(7)
  const server = new AskedServer()
  const node = new Node(server, { clock: undefined, isWide: false }, "sl2:{7f}counter0alice")
  const learning = node.learnTime()
  server.latest.answer(["1700000000", "000000"])
  await learning
  server.asked.length = 0
  const batcher = new RefundBatcher(() => node, inBackground)
  const failures: Error[] = []
  /** Refunds the units of these keys. Returns an array that receives the outcome. */
  const refundKeys = (keys: readonly string[], withinMs = 100, refundOf = refund): unknown[] => {
    const outcome: unknown[] = []
    batcher.add(keys.map(refundOf), keys, { withinMs }).then(
      () => outcome.push("back"),
      (error: Error) => {
        failures.push(error)
        outcome.push(error.message)
      },
    )
    return outcome
  }
  return { server, node, refundKeys, failures }
}

function refund(partition: string): Refund {
  return {
    policy: POLICY,
    partition,
    units: 3,
    after: { startMs: NOW_MS - 1_000, current: 5, previous: 4 },
  }
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `key${i}`)
}

const REPLY = [NOW_MS, 1]

describe("batched refunds", () => {
  it("share a call if they are requested in one tick, with the shortest of their timeouts", async () => {
    const { server, refundKeys } = await startBatcher()
    const outcomes = [refundKeys(["a", "b"], 30), refundKeys(["c"], 10), refundKeys([], 5)]
    await nextTurn()
    expect(server.asked).toMatchObject([
      {
        script: REFUND.sha,
        keys: ["a", "b", "c"],
        args: [`[-1,${NOW_MS + 10},0,1,3,10,60000,0,3,1,3,${NOW_MS - 1_000},5,4]`],
      },
    ])
    expect(outcomes).toEqual([[], [], ["back"]])
    server.latest.answer(REPLY)
    await nextTurn()
    expect(outcomes).toEqual([["back"], ["back"], ["back"]])
    const later = refundKeys(["d"])
    await nextTurn()
    server.latest.answer(REPLY)
    await nextTurn()
    expect([later, server.asked.length]).toEqual([["back"], 2])
  })

  it("are sent at most 64 per call, and a smaller call waits until at most one call is in flight", async () => {
    const { server, refundKeys } = await startBatcher()
    const all = names(128)
    const outcome = refundKeys(all)
    const last = refundKeys(["last"])
    await nextTurn()
    expect(server.asked.map(({ keys }) => keys)).toEqual([all.slice(0, 64), all.slice(64)])
    server.asked[1]?.answer(REPLY)
    await nextTurn()
    expect(server.asked.slice(2).map(({ keys }) => keys)).toEqual([["last"]])
    server.asked[0]?.answer(REPLY)
    await nextTurn()
    expect([outcome, last]).toEqual([["back"], []])
    server.latest.answer(REPLY)
    await nextTurn()
    expect([last, server.asked.length]).toEqual([["back"], 3])
  })

  it("are sent in up to twelve concurrent calls with 64 refunds each", async () => {
    const { server, refundKeys } = await startBatcher()
    refundKeys(names(2 * 64))
    await nextTurn()
    refundKeys(names(64))
    await nextTurn()
    expect(server.asked.map(({ keys }) => keys.length)).toEqual([64, 64, 64])
    for (const { answer } of server.asked.splice(0)) answer(REPLY)
    await nextTurn()
    const all = names(14 * 64)
    const outcome = refundKeys(all)
    await nextTurn()
    expect(server.asked.map(({ keys }) => keys.length)).toEqual(Array(12).fill(64))
    server.asked[3]?.answer(REPLY)
    await nextTurn()
    expect(server.asked.slice(12).map(({ keys }) => keys)).toEqual([all.slice(768, 832)])
    for (let nth = 0; nth < 14; nth++) {
      server.asked[nth]?.answer(REPLY)
      await nextTurn()
    }
    expect([outcome, server.asked.length]).toEqual([["back"], 14])
  })

  it("are not sent if their timeout passes while they are queued", async () => {
    const { server, refundKeys, failures } = await startBatcher()
    refundKeys(names(128))
    const [short, long] = [refundKeys(["short"], 10), refundKeys(["long"], 11)]
    await nextTurn()
    vi.advanceTimersByTime(10)
    expect(server.asked).toHaveLength(2)
    server.asked[0]?.answer(REPLY)
    await nextTurn()
    expect(server.asked.slice(2).map(({ keys }) => keys)).toEqual([["long"]])
    server.asked[2]?.answer(REPLY)
    await nextTurn()
    expect([short, long]).toEqual([[SILENT], ["back"]])
    expect(failures).toMatchObject([{ kind: "timeout", outcome: "not-applied" }])
  })

  it("are not sent in an empty call if the timeouts of all queued refunds have passed", async () => {
    const { server, refundKeys } = await startBatcher()
    refundKeys(names(128))
    const short = refundKeys(["short"], 10)
    await nextTurn()
    vi.advanceTimersByTime(10)
    server.asked[0]?.answer(REPLY)
    await nextTurn()
    expect([short, server.asked.length]).toEqual([[SILENT], 2])
  })

  it("are sent in one call at a time after a call without a reply, until the server responds", async () => {
    const { server, refundKeys } = await startBatcher({ inBackground: true })
    refundKeys(names(2 * 64), 10)
    await nextTurn()
    expect(server.asked).toHaveLength(2)
    vi.advanceTimersByTime(10)
    await nextTurn()
    await nextTurn()
    refundKeys(names(3 * 64))
    await nextTurn()
    expect(server.asked).toHaveLength(3)
    server.latest.answer(REPLY)
    await nextTurn()
    expect(server.asked).toHaveLength(5)
  })

  it("are rejected over several event-loop ticks if many of them time out together", async () => {
    const { server, refundKeys } = await startBatcher()
    const outcomes = names(4_000).map((key) => refundKeys([key], 10))
    const settled = () => outcomes.filter(({ length }) => length > 0).length
    await nextTurn()
    expect(server.asked).toHaveLength(12)
    vi.advanceTimersByTime(10)
    const turns = [settled()]
    while (turns.at(-1) !== 4_000) {
      await nextTurn()
      turns.push(settled())
    }
    const most = Math.max(...turns.slice(1).map((all, i) => all - (turns[i] as number)))
    // The calls in flight end in one turn.
    expect(most).toBeLessThanOrEqual(12 * 64 + 256)
    expect(server.asked).toHaveLength(12)
  })

  it("are rejected if the server reports that the call came too late", async () => {
    const { server, refundKeys, failures } = await startBatcher()
    const outcome = refundKeys(["a"])
    await nextTurn()
    server.latest.answer([NOW_MS])
    await nextTurn()
    expect(outcome).toEqual(["The refund reached Redis too late, so no units were refunded."])
    expect(failures).toMatchObject([{ kind: "timeout", outcome: "not-applied" }])
  })

  it("are rejected with an unknown outcome if only some of them were applied", async () => {
    const { server, refundKeys, failures } = await startBatcher()
    refundKeys(names(65))
    await nextTurn()
    server.asked[0]?.answer(REPLY)
    server.asked[1]?.answer([NOW_MS])
    await nextTurn()
    expect(failures).toMatchObject([
      { kind: "timeout", outcome: "unknown", cause: { outcome: "not-applied" } },
    ])
  })

  it("are rejected as not applied if they certainly did not run, and otherwise with an unknown outcome", async () => {
    const { server, node, refundKeys, failures } = await startBatcher()
    refundKeys(["a"])
    await nextTurn()
    server.latest.fail("ERR no")
    await nextTurn()
    refundKeys(["b"])
    await nextTurn()
    server.latest.fail("READONLY You can't write against a read only replica.")
    await nextTurn()
    for (let i = 0; i < 5; i++) node.failed(new Error("ERR no"))
    refundKeys(["c"])
    await nextTurn()
    expect(failures.map((error) => (error as StoreUnavailableError).outcome)).toEqual([
      "unknown",
      "not-applied",
      "not-applied",
    ])
    node.breaker.stop()
  })

  it("are never sent twice, so all refunds of a failed call are rejected, and later refunds are sent", async () => {
    const { server, refundKeys } = await startBatcher()
    const failing = [refundKeys(["a"]), refundKeys(["b"])]
    await nextTurn()
    server.latest.fail("ERR no")
    await nextTurn()
    expect([failing, server.asked.length]).toEqual([[["Redis failed: ERR no"], ["Redis failed: ERR no"]], 1])
    const next = refundKeys([...names(64), "c"])
    await nextTurn()
    const calls = server.asked.slice(1)
    expect(calls.map(({ keys }) => keys)).toEqual([names(64), ["c"]])
    for (const { answer } of calls) answer(REPLY)
    await nextTurn()
    expect(next).toEqual(["back"])
  })
})

describe("releases of permits", () => {
  const PART_MS = 60_000
  /** Returns a release of `units`, or a renewal, from the window that is `back` windows ago. */
  const release =
    (units = 1, back = 0) =>
    (partition: string): Refund => ({
      policy: { ...POLICY, algorithm: "in-flight", align: "epoch" },
      partition,
      units,
      after: { startMs: NOW_MS - back * PART_MS, current: 5, previous: 4 },
    })
  /** Returns the keys of a call, each with its units and the windows since its permits were taken. */
  const changesIn = (call: { readonly keys: readonly string[]; readonly args: readonly string[] }) => {
    const numbers: number[] = JSON.parse(call.args[0] as string).slice(8)
    const runs = numbers.flatMap((count, i) =>
      i % 6 === 0 ? Array(count).fill(numbers.slice(i, i + 6)) : [],
    )
    return call.keys.map((key, i) => {
      const [, , units, startMs] = runs[i]
      return [key, units, (NOW_MS - startMs) / PART_MS]
    })
  }

  it("of one counter and window are one command of a call, and each caller receives its result", async () => {
    const { server, refundKeys } = await startBatcher()
    const outcomes = names(64).map((_, i) => refundKeys([i % 2 === 0 ? "hot" : "warm"], 100, release()))
    await nextTurn()
    expect(server.asked.map(changesIn)).toEqual([
      [
        ["hot", 32, 0],
        ["warm", 32, 0],
      ],
    ])
    expect(outcomes.every((outcome) => outcome.length === 0)).toBe(true)
    server.latest.answer(REPLY)
    await nextTurn()
    expect(outcomes).toEqual(names(64).map(() => ["back"]))
  })

  it("stay in order with renewals and with releases of other windows, and other refunds are not merged", async () => {
    const { server, refundKeys } = await startBatcher()
    for (const [units, back] of [
      [1, 1],
      [2, 1],
      [-4, 1],
      [-4, 1],
      [1, 0],
      [2, 0],
      [1, 1],
    ] as const) {
      refundKeys(["hot"], 100, release(units, back))
    }
    await nextTurn()
    expect(server.asked.map(changesIn)).toEqual([
      [
        ["hot", 3, 1],
        ["hot", -4, 1],
        ["hot", -4, 1],
        ["hot", 3, 0],
        ["hot", 1, 1],
      ],
    ])
    server.latest.answer(REPLY)
    await nextTurn()
    refundKeys(["other", "other"])
    await nextTurn()
    expect(server.latest.keys).toEqual(["other", "other"])
  })

  it("are sent once for all counters whose permits were taken in the same window", async () => {
    const { server, refundKeys } = await startBatcher()
    refundKeys(["a", "b"], 100, release())
    refundKeys(["c"], 100, (key) => ({
      ...release()(key),
      after: { startMs: NOW_MS, current: 1, previous: 0 },
    }))
    refundKeys(["d"], 100, release(2))
    refundKeys(["e", "f"], 100, release(2, 1))
    await nextTurn()
    expect(JSON.parse(server.latest.args[0] as string).slice(8)).toEqual(
      [
        [3, 1, 1, NOW_MS, 0, 0],
        [1, 1, 2, NOW_MS, 0, 0],
        [2, 1, 2, NOW_MS - PART_MS, 0, 0],
      ].flat(),
    )
  })

  it("are not merged with a release that has timed out", async () => {
    const { server, refundKeys } = await startBatcher()
    refundKeys(names(128))
    const [short, long] = [refundKeys(["hot"], 10, release(1)), refundKeys(["hot"], 11, release(2))]
    await nextTurn()
    vi.advanceTimersByTime(10)
    server.asked[0]?.answer(REPLY)
    await nextTurn()
    expect(changesIn(server.latest)).toEqual([["hot", 2, 0]])
    server.latest.answer(REPLY)
    await nextTurn()
    expect([short, long]).toEqual([[SILENT], ["back"]])
  })
})

describe("refunds to a server with an open circuit breaker", () => {
  it("are rejected immediately if a caller waits, even while other calls are in flight", async () => {
    const { server, node, refundKeys } = await startBatcher()
    refundKeys(names(128))
    await nextTurn()
    for (let i = 0; i < 5; i++) node.failed(new Error("ERR no"))
    const outcome = refundKeys(["a"])
    await nextTurn()
    expect([outcome, server.asked.length]).toEqual([[DOWN], 2])
    node.breaker.stop()
  })
})
