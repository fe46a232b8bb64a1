import { describe, expect, it, vi } from "vitest"
import { type PaceError, paced } from "./index.ts"
import { left, world } from "./testing/fake-server.ts"

const times = <Result>(n: number, make: (i: number) => Result): Result[] =>
  Array.from({ length: n }, (_, i) => make(i))

describe("a new gate", () => {
  it("sends the second call after a second without a response, and then doubles the calls every 0.1 s", async () => {
    const { api, call, arrived, pass, answer, timers } = world()
    const calls = times(40, () => call())
    await pass(999)
    expect(arrived).toHaveLength(1)
    const counts: number[] = []
    for (let i = 0; i < 5; i++) {
      await pass(i === 0 ? 1 : 100)
      counts.push(arrived.length)
    }
    expect(counts).toEqual([2, 3, 5, 9, 17])
    expect(api.status()).toMatchObject([{ mode: "learning", inFlight: 17 }])
    await answer(0, 200, left(50, 60))
    expect(arrived).toHaveLength(40)
    for (let i = 1; i < 40; i++) await answer(i)
    expect(calls.every(({ result }) => result === 200)).toBe(true)
    expect(timers()).toBe(0)
  })

  it("sends the next call alone for a second if the previous call has failed", async () => {
    const { call, arrived, pass, fail } = world()
    times(4, () => call())
    await pass(900)
    await fail(0, new Error("broken"))
    await pass(999)
    expect(arrived).toHaveLength(2)
    await pass(1)
    expect(arrived).toHaveLength(3)
  })
})

describe("a gate that knows the remaining units", () => {
  it("never has more calls in flight than units remain", async () => {
    const { api, call, arrived, answer } = world()
    times(9, () => call())
    await answer(0, 200, left(3, 60, 4))
    expect(arrived).toHaveLength(4)
    expect(api.status()).toMatchObject([
      { mode: "paced", dialect: "draft-8", remaining: 3, quota: 4, inFlight: 3 },
    ])
  })

  it("spreads the last half of the units over their time, and varies each interval by a quarter", async () => {
    const { call, arrived, pass, answer } = world()
    times(30, () => call())
    await answer(0, 200, left(20, 40))
    await pass(30_000)
    const gaps = arrived.slice(1).map(({ atMs }, i) => atMs - (arrived[i]?.atMs ?? 0))
    expect(gaps.length).toBeGreaterThan(12)
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(1_500)
    for (const gap of gaps) expect(gap).toBeLessThanOrEqual(2_501)
    expect(new Set(gaps).size).toBeGreaterThan(5)
  })

  it("uses the highest number of remaining units so far as the quota if no response contains a quota", async () => {
    const { call, arrived, pass, answer } = world()
    times(3, () => call())
    await answer(0, 200, { ratelimit: '"p";r=10;t=10' })
    expect(arrived).toHaveLength(3)
    await answer(1, 200, { ratelimit: '"p";r=4;t=10' })
    times(2, () => call())
    await pass(1_000)
    expect(arrived).toHaveLength(3)
    await pass(2_200)
    expect(arrived).toHaveLength(4)
  })

  it("waits for the reset if no units remain, and then sends one call", async () => {
    const { api, call, arrived, pass, answer } = world()
    times(3, () => call())
    await answer(0, 200, left(0, 7))
    expect(api.status()).toMatchObject([{ mode: "learning", waiting: 2 }])
    await pass(6_999)
    expect(arrived).toHaveLength(1)
    while (arrived.length < 2) await pass(10)
    expect(performance.now()).toBeLessThanOrEqual(8_760)
    await answer(1, 200, left(9, 7, 10))
    expect(arrived).toHaveLength(3)
  })

  it("lowers the remaining units by an older response, but never raises them", async () => {
    const { api, call, answer } = world()
    times(5, () => call())
    await answer(0, 200, left(80, 60))
    await answer(4, 200, left(60, 60))
    expect(api.status()).toMatchObject([{ remaining: 60 }])
    await answer(1, 200, left(79, 60))
    expect(api.status()).toMatchObject([{ remaining: 60 }])
    await answer(2, 200, left(10, 60))
    expect(api.status()).toMatchObject([{ remaining: 10 }])
    // This call is newer than the previous one, but older than the newest call.
    await answer(3, 200, left(50, 60))
    expect(api.status()).toMatchObject([{ remaining: 10 }])
  })

  it.each([
    ["in the middle of the month", 1_728_000],
    ["on its last day", 72_000],
  ])("does not spread the rest of a month, %s", async (_, t) => {
    const { call, arrived, answer } = world()
    times(9, () => call())
    await answer(0, 200, left(5, t, 1_000, 2_678_400))
    expect(arrived).toHaveLength(6)
    for (let i = 1; i <= 5; i++) await answer(i, 200, left(5 - i, t, 1_000, 2_678_400))
    expect(arrived).toHaveLength(6)
  })

  it("waits for the policy that is empty for longest", async () => {
    const { call, arrived, answer, pass } = world()
    times(2, () => call())
    await answer(0, 200, { ratelimit: '"a";r=0;t=2, "b";r=0;t=9' })
    await pass(8_999)
    expect(arrived).toHaveLength(1)
  })
})

it("a long call in flight does not delay other calls after the reset", async () => {
  const { call, arrived, answer, pass } = world()
  call("long")
  call("short")
  await answer(0, 200, left(50, 60))
  call("poll")
  await answer(1, 200, left(0, 2))
  const next = call("next")
  await pass(1_900)
  expect(arrived).toHaveLength(3)
  await pass(200)
  expect(arrived).toHaveLength(4)
  await answer(3, 200, left(50, 60))
  expect(next.result).toBe(200)
})

it("a server that no longer sends fields reports no remaining units", async () => {
  const { api, call, answer, pass } = world()
  call()
  await answer(0, 200, left(0, 1))
  await pass(1_500)
  call()
  await answer(1)
  expect(api.status()).toMatchObject([{ mode: "open", remaining: undefined, quota: undefined }])
})

describe("the jitter of a block", () => {
  it("is at most a quarter, differs between clients, and does not grow with further refusals", async () => {
    const ends: number[] = []
    for (let client = 0; client < 40; client++) {
      const { api, call, answer } = world()
      call()
      await answer(0, 200, left(99, 60))
      times(20, () => call())
      for (let i = 1; i <= 20; i++) await answer(i, 429, { "retry-after": "10" })
      ends.push(api.status()[0]?.blockedForMs as number)
    }
    expect(Math.min(...ends)).toBeGreaterThanOrEqual(10_000)
    expect(Math.max(...ends)).toBeLessThanOrEqual(12_500)
    expect(Math.min(...ends)).toBeLessThan(11_000)
    expect(Math.max(...ends)).toBeGreaterThan(11_500)
  })
})

describe("a refusal until the next month", () => {
  const DAY_MS = 86_400_000

  it("blocks all calls of the key for weeks and at most a quarter of an hour longer", async () => {
    const ends: number[] = []
    for (let client = 0; client < 20; client++) {
      const { api, call, answer } = world()
      call()
      await answer(0, 429, { "retry-after": "1814400" })
      ends.push((api.status()[0]?.blockedForMs as number) - 21 * DAY_MS)
    }
    expect(Math.min(...ends)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...ends)).toBeLessThanOrEqual(900_000)
    expect(Math.max(...ends) - Math.min(...ends)).toBeGreaterThan(300_000)
  })

  it("sends no call before the month begins", async () => {
    const { call, arrived, answer, pass } = world()
    call()
    await answer(0, 429, { "retry-after": "1814400" })
    await pass(20 * DAY_MS - 900_000)
    const early = call()
    await pass(0)
    const { retryAfterMs } = early.result as PaceError
    expect(retryAfterMs).toBeGreaterThanOrEqual(DAY_MS + 900_000)
    expect(retryAfterMs).toBeLessThanOrEqual(DAY_MS + 1_800_000)
    expect(arrived).toHaveLength(1)
    await pass(DAY_MS + 1_800_000)
    call()
    await answer(1)
    expect(arrived).toHaveLength(2)
  })

  it("is reported in days, rounded up", async () => {
    const { call, answer, pass } = world()
    call()
    await answer(0, 429, { "retry-after": "1814400" })
    const early = call()
    await pass(0)
    expect(early.result).toMatchObject({ message: expect.stringContaining("it may leave in 22 days. ") })
  })
})

describe("a refusal", () => {
  it("blocks all calls of the key for Retry-After and at most a quarter longer, and then allows one call", async () => {
    const { api, call, arrived, pass, answer } = world()
    times(4, () => call())
    await answer(0, 429, { "retry-after": "4" })
    expect(api.status()[0]?.blockedForMs).toBeGreaterThanOrEqual(4_000)
    await pass(3_999)
    expect(arrived).toHaveLength(1)
    while (arrived.length < 2) await pass(10)
    expect(performance.now()).toBeLessThanOrEqual(5_010)
    await pass(980)
    expect(arrived).toHaveLength(2)
  })

  it("still blocks after the response to a call that was sent before it", async () => {
    const { api, call, arrived, pass, answer } = world()
    times(4, () => call())
    await answer(0, 200, left(80, 60))
    await answer(1, 429, { "retry-after": "1" })
    await answer(2, 200, left(80, 60))
    expect(api.status()).toMatchObject([{ mode: "learning" }])
    call()
    await pass(1_300)
    // Only one call leaves and learns the quota, although a call from before the refusal is still in flight.
    expect(arrived).toHaveLength(5)
  })

  it("without a wait blocks nothing", async () => {
    const { call, answer } = world()
    const [first, second] = times(2, () => call())
    await answer(0, 429)
    expect(first?.result).toBe(429)
    await answer(1)
    expect(second?.result).toBe(200)
  })

  it("that only reports 0 remaining units blocks for a second", async () => {
    const { call, arrived, pass, answer } = world()
    times(3, () => call())
    await answer(0, 200, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "tomorrow" })
    await pass(999)
    expect(arrived).toHaveLength(1)
    await pass(251)
    expect(arrived).toHaveLength(2)
  })
})

describe("backoffMs", () => {
  it("blocks all calls after a 429 without a wait, and doubles with each consecutive 429", async () => {
    const { call, arrived, pass, answer } = world({ backoffMs: 1_000, retries: 9, maxWaitMs: 600_000 })
    const [first, second] = times(2, () => call())
    const waits: number[] = []
    for (let i = 0; i < 4; i++) {
      const atMs = performance.now()
      await answer(i, 429)
      while (arrived.length === i + 1) await pass(10)
      expect(arrived).toHaveLength(i + 2)
      waits.push(performance.now() - atMs)
    }
    waits.forEach((ms, i) => {
      expect(ms).toBeGreaterThanOrEqual(1_000 * 2 ** i)
      // The jitter of the backoff at most doubles the wait, and the jitter of the block adds a quarter.
      expect(ms).toBeLessThanOrEqual(1_000 * 2 ** i * 2.5 + 10)
    })
    await answer(4)
    await answer(5)
    expect([first?.result, second?.result]).toEqual([200, 200])
  })

  it("is at most a minute plus the jitter of a block", async () => {
    const { api, arrived, call, pass, answer } = world({ backoffMs: 60_000, retries: 3, maxWaitMs: 600_000 })
    call()
    for (let i = 0; i < 3; i++) {
      await answer(i, 429)
      const [{ blockedForMs = 0 } = {}] = api.status()
      expect(blockedForMs).toBeGreaterThanOrEqual(60_000)
      expect(blockedForMs).toBeLessThanOrEqual(75_000)
      await pass(75_000)
    }
    expect(arrived).toHaveLength(4)
  })

  it("counts the refusals of calls that were in flight together as one refusal", async () => {
    const { api, call, arrived, answer, pass } = world({ backoffMs: 1_000, maxWaitMs: 600_000 })
    call("open")
    await answer(0)
    times(8, () => call())
    for (let i = 1; i <= 8; i++) await answer(i, 429)
    expect(api.status()).toMatchObject([{ waiting: 8, inFlight: 0 }])
    expect(api.status()[0]?.blockedForMs).toBeLessThanOrEqual(2_500)
    while (arrived.length < 10) await pass(10)
    expect(performance.now()).toBeLessThanOrEqual(2_510)
    await answer(9)
    expect(arrived).toHaveLength(17)
  })

  it("starts again after a call that was not refused", async () => {
    const { api, call, answer, pass } = world({ backoffMs: 1_000, retries: 9, maxWaitMs: 600_000 })
    call()
    for (let i = 0; i < 4; i++) {
      await answer(i, 429)
      await pass(20_000)
    }
    await answer(4)
    call()
    await answer(5, 429)
    expect(api.status()[0]?.blockedForMs).toBeLessThanOrEqual(2_500)
  })

  it("does not apply if the server's response contains a wait", async () => {
    const { api, call, answer } = world({ backoffMs: 60_000 })
    call()
    await answer(0, 429, { "retry-after": "2" })
    expect(api.status()[0]?.blockedForMs).toBeLessThanOrEqual(2_500)
  })

  it("passes the refusal to the caller if the call may not wait that long", async () => {
    const { api, arrived, call, answer } = world({ backoffMs: 2_000, maxWaitMs: 1_000 })
    const events: unknown[] = []
    api.on("refused", (event) => events.push(event))
    const made = call()
    await answer(0, 429)
    expect([made.result, arrived.length]).toEqual([429, 1])
    expect(events).toMatchObject([{ status: 429, waitMs: undefined, isRetried: false }])
  })
})

describe("the limit of the caller", () => {
  it("is never exceeded in any window, whatever the responses contain", async () => {
    const { call, arrived, pass, answer } = world({ limit: { limit: 3, window: "10 seconds" } })
    times(8, () => call())
    await answer(0, 200, left(99, 60))
    expect(arrived).toHaveLength(3)
    await pass(9_999)
    expect(arrived).toHaveLength(3)
    await pass(1)
    expect(arrived).toHaveLength(6)
    await pass(10_000)
    expect(arrived).toHaveLength(8)
  })

  it("also counts retries", async () => {
    const { call, arrived, pass, answer } = world({ limit: { limit: 2, window: 10_000 } })
    const [first] = times(3, () => call())
    await answer(0, 429, { "retry-after": "1" })
    await pass(1_300)
    expect(arrived).toHaveLength(2)
    await answer(1)
    expect(first?.result).toBe(200)
    await pass(8_000)
    expect(arrived).toHaveLength(2)
    await pass(1_000)
    expect(arrived).toHaveLength(3)
  })
})

it("the paced fetch removes an unused key once another key is used", async () => {
  const { api, call, pass, answer } = world({
    key: ({ url }) => url.slice(-1),
    limit: { limit: 5, window: "2 minutes" },
  })
  call("a")
  call("b")
  await answer(0, 200, left(5, 10))
  await pass(60_001)
  call("c")
  await pass(0)
  // "a" still counts for the limit of the caller, and "b" is in flight.
  expect(api.status().map(({ key }) => key)).toEqual(["a", "b", "c"])
  await pass(60_001)
  call("d")
  await pass(0)
  expect(api.status().map(({ key }) => key)).toEqual(["b", "c", "d"])
})

it("the paced fetch keeps at most 10,000 keys without calls, and removes the least recently used first", async () => {
  const { pass } = world()
  const api = paced(async (input) => {
    const path = String(input).slice(17)
    if (path === "pending") return new Promise(() => {})
    if (path === "blocked") return new Response("", { status: 429, headers: { "retry-after": "86400" } })
    return new Response("", { headers: left(90, 86_400) })
  })
  const send = (key: string) => void api(`http://localhost/${key}`, { pace: { key } }).catch(() => {})
  for (const key of ["first", "pending", "blocked"]) send(key)
  for (let i = 0; i < 22_000; i++) {
    send(`${i}`)
    if (i % 1_000 !== 0) continue
    await pass(1)
    // A call that fails immediately also uses its key.
    send("blocked")
    expect(api.status().length).toBeLessThanOrEqual(10_001)
  }
  await pass(1)
  const kept = new Map(api.status().map((status) => [status.key, status]))
  expect(["pending", "blocked", "21999", "18000"].filter((key) => !kept.has(key))).toEqual([])
  expect(["first", "0", "9999"].filter((key) => kept.has(key))).toEqual([])
  expect(kept.get("blocked")?.blockedForMs).toBeGreaterThan(86_000_000)
})

it("the paced fetch looks for unused keys at most once a minute", async () => {
  const { api, call, answer, pass } = world({ key: ({ url }) => url.slice(-1) })
  call("a")
  await answer(0, 200, left(99, 1))
  await pass(30_000)
  call("b")
  await pass(0)
  expect(api.status().map(({ key }) => key)).toEqual(["a", "b"])
})

it("the paced fetch does not remove a key while its calls count for the limit of the caller", async () => {
  const { api, call, answer, pass } = world({
    key: ({ url }) => url.slice(-1),
    limit: { limit: 2, window: "3 minutes" },
  })
  const keys = () => api.status().map(({ key }) => key)
  for (let i = 0; i < 2; i++) {
    call("a")
    await answer(i, 200, left(99, 1))
  }
  await pass(170_000)
  call("b")
  await answer(2)
  expect(keys()).toEqual(["a", "b"])
  await pass(20_000)
  call("a")
  await answer(3)
  await pass(50_000)
  call("c")
  await answer(4)
  expect(keys()).toEqual(["a", "b", "c"])
  await pass(150_000)
  call("d")
  await pass(0)
  expect(keys()).toEqual(["c", "d"])
})

it("the paced fetch does not remove a key whose calls are refused", async () => {
  const { api, call, answer, pass } = world({ key: ({ url }) => url.slice(-1) })
  call("a")
  await answer(0, 429, { "retry-after": "300" })
  await pass(60_001)
  call("b")
  await pass(0)
  expect(api.status().map(({ key }) => key)).toEqual(["a", "b"])
})

it("the paced fetch reports a wait and what it has learned, until the listener is removed", async () => {
  const { api, call, pass, answer } = world()
  const [waits, learned] = [vi.fn(), vi.fn()]
  const stop = api.on("wait", waits)
  api.on("learned", learned)
  times(2, () => call())
  await pass(0)
  expect(waits.mock.calls).toMatchObject([[{ key: "http://localhost", waiting: 1, blockedForMs: 0 }]])
  stop()
  await answer(0, 200, left(0, 7))
  call()
  expect(waits).toHaveBeenCalledTimes(1)
  expect(learned.mock.calls).toMatchObject([
    [{ mode: "paced", remaining: 0, quota: 100, dialect: "draft-8" }],
  ])
})

it("an error of a listener becomes an uncaught error, and does not stop a call", async () => {
  const { api, call, answer } = world()
  const thrown = vi.spyOn(globalThis, "queueMicrotask").mockImplementation(() => {})
  api.on("learned", () => {
    throw new Error("of the listener")
  })
  const made = call()
  await answer(0, 200, left(9, 7))
  expect(made.result).toBe(200)
  // Node 24 itself queues microtasks, too.
  const runAll = () => {
    for (const [run] of thrown.mock.calls) run()
  }
  expect(runAll).toThrow("of the listener")
  thrown.mockRestore()
})
