import { getEventListeners } from "node:events"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { type PacedOptions, PaceError, paced } from "./index.ts"
import { left, world } from "./testing/fake-server.ts"

const times = <Result>(n: number, make: (i: number) => Result): Result[] =>
  Array.from({ length: n }, (_, i) => make(i))
const REFUSED = { "retry-after": "1" }
const refused = Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } })

const codeOf = (code: string) => Object.assign(new TypeError("fetch failed"), { cause: { code } })

describe("another attempt", () => {
  const stream = () => new ReadableStream({ start: (controller) => controller.close() })
  const asyncIterable = { async *[Symbol.asyncIterator]() {} } as unknown as ReadableStream

  it.each<[string, number, RequestInit & { duplex?: "half" }, boolean]>([
    ["a GET", 429, {}, true],
    ["a POST, which was not processed", 429, { method: "POST", body: "text" }, true],
    ["a POST of bytes", 429, { method: "POST", body: new Uint8Array(3) }, true],
    ["a POST of a form", 429, { method: "POST", body: new URLSearchParams("a=1") }, true],
    ["a stream, which is gone", 429, { method: "POST", body: stream(), duplex: "half" }, false],
    ["an async iterable, which is gone", 429, { method: "POST", body: asyncIterable, duplex: "half" }, false],
    ["a GET", 503, {}, true],
    ["a PUT", 503, { method: "PUT", body: "text" }, true],
    ["a HEAD", 503, { method: "HEAD" }, true],
    ["an OPTIONS", 503, { method: "OPTIONS" }, true],
    ["a DELETE", 503, { method: "DELETE" }, true],
    ["a PATCH", 503, { method: "PATCH" }, false],
    ["a POST, which may have been processed", 503, { method: "POST", body: "text" }, false],
    ["a POST with a key", 503, { method: "POST", headers: { "Idempotency-Key": "7" } }, true],
  ])("is made for %s after %d: %o", async (_name, status, init, isRepeated) => {
    const { call, arrived, answer, pass } = world()
    const made = call("", init)
    await answer(0, status, REFUSED)
    expect(made.result).toBe(isRepeated ? undefined : status)
    await pass(1_251)
    expect(arrived).toHaveLength(isRepeated ? 2 : 1)
    if (!isRepeated) return
    expect(arrived[1]?.init.body).toBe(init.body)
    await answer(1)
    expect(made.result).toBe(200)
  })

  it.each([429, 503])("is not made after %d if idempotent returns a promise", async (status) => {
    const { call, answer } = world({ idempotent: (async () => false) as never })
    const made = call()
    await answer(0, status, REFUSED)
    expect(made.result).toBe(status)
  })

  it("is not made after a failed connection if idempotent returns a promise", async () => {
    const { call, fail } = world({ idempotent: (async () => false) as never })
    const made = call()
    await fail(0, refused)
    expect(made.result).toBe(refused)
  })

  it.each<[string, Error, RequestInit, boolean]>([
    ["a GET without a connection", refused, {}, true],
    ["a POST without a connection", refused, { method: "POST" }, false],
    [
      "a GET whose connection broke later",
      Object.assign(new Error("reset"), { code: "ECONNRESET" }),
      {},
      false,
    ],
    ["a GET with an unknown error", new TypeError("Failed to fetch"), {}, false],
    ["a GET after a timeout of the connection", codeOf("UND_ERR_CONNECT_TIMEOUT"), {}, true],
    ["a GET of an unknown host", codeOf("ENOTFOUND"), {}, true],
  ])("is made for %s", async (_name, error, init, isRepeated) => {
    const { call, arrived, fail, answer, pass } = world()
    const made = call("", init)
    await fail(0, error)
    expect(made.result).toBe(isRepeated ? undefined : error)
    await pass(199)
    expect(arrived).toHaveLength(1)
    await pass(201)
    expect(arrived).toHaveLength(isRepeated ? 2 : 1)
    if (isRepeated) await answer(1)
    expect(made.result).toBe(isRepeated ? 200 : error)
  })

  it("waits longer after each failed connection, and finally rejects with its error", async () => {
    const { call, arrived, fail, pass } = world({ retries: 2 })
    const made = call()
    await fail(0, refused)
    await pass(400)
    await fail(1, refused)
    await pass(399)
    expect(arrived).toHaveLength(2)
    await pass(401)
    await fail(2, refused)
    expect(made.result).toBe(refused)
  })

  it("is made at most `retries` times, and the caller gets the last refusal", async () => {
    const { api, call, arrived, answer, pass } = world({ retries: 1 })
    const events: unknown[] = []
    api.on("refused", (event) => events.push(event))
    const made = call()
    await answer(0, 429, REFUSED)
    await pass(1_251)
    await answer(1, 429, REFUSED)
    expect(made.result).toBe(429)
    expect(arrived).toHaveLength(2)
    const refusal = { key: "http://localhost", status: 429, waitMs: 1_000 }
    expect(events).toEqual([
      { ...refusal, isRetried: true },
      { ...refusal, isRetried: false },
    ])
  })

  it.each<[string, PacedOptions, RequestInit, number, boolean]>([
    ["narrows what follows 429", { idempotent: () => false }, {}, 429, false],
    [
      "widens what follows 503",
      { idempotent: ({ method }) => method === "POST" },
      { method: "POST" },
      503,
      true,
    ],
  ])("is controlled by `idempotent`, which %s", async (_name, options, init, status, isRepeated) => {
    const { call, answer } = world(options)
    const made = call("", init)
    await answer(0, status, REFUSED)
    expect(made.result).toBe(isRepeated ? undefined : status)
  })

  it.each([
    ["true", undefined, true],
    ["false", undefined, false],
    ["false", "1", false],
    ["true", "1", true],
  ])("depends on Stripe-Should-Retry: %s, Retry-After: %s", async (should, after, isRepeated) => {
    const { call, arrived, answer, pass } = world()
    const made = call()
    const headers = { "stripe-should-retry": should, ...(after !== undefined && { "retry-after": after }) }
    await answer(0, 429, headers)
    expect(made.result).toBe(isRepeated ? undefined : 429)
    await pass(1_300)
    expect(arrived).toHaveLength(isRepeated ? 2 : 1)
  })

  it("sends the body of a Request again", async () => {
    const { api, arrived, answer, pass } = world({ retries: 1 })
    const request = new Request("http://localhost/", { method: "POST", body: "text" })
    const response = api(request)
    await answer(0, 429, REFUSED)
    await pass(1_300)
    await answer(1)
    expect((await response).status).toBe(200)
    const bodies = arrived.map(({ input }) => (input as Request).text())
    expect(await Promise.all(bodies)).toEqual(["text", "text"])
    // The last attempt needs no copy.
    expect(arrived.map(({ input }) => input === request)).toEqual([false, true])
  })

  it("sends the body of the second argument again, and copies no other body", async () => {
    const { api, arrived, answer, pass } = world()
    const request = new Request("http://localhost/", { method: "POST", body: "other" })
    const response = api(request, { body: "text" })
    await answer(0, 429, REFUSED)
    await pass(1_300)
    await answer(1)
    expect((await response).status).toBe(200)
    expect(arrived.map(({ input, init }) => [input === request, init.body])).toEqual([
      [true, "text"],
      [true, "text"],
    ])
  })

  it("stays within the budget of ten retries at first, and then a tenth of the calls", async () => {
    const { call, arrived, answer, pass } = world({ retries: 100, maxWaitMs: 100_000 })
    const first = call()
    for (let i = 0; i < 11; i++) {
      await answer(i, 429, REFUSED)
      await pass(1_251)
    }
    expect(first.result).toBe(429)
    expect(arrived).toHaveLength(11)
    for (let i = 0; i < 9; i++) {
      call()
      await answer(11 + i)
    }
    const [second, third] = [call(), call()]
    await answer(20, 429, REFUSED)
    expect(second.result).toBeUndefined()
    await answer(21, 429, REFUSED)
    expect(third.result).toBe(429)
  })

  it("is not made after failed connections beyond the budget", async () => {
    const { call, arrived, fail, pass } = world({ retries: 100, maxWaitMs: 1_000_000 })
    const made = call()
    for (let i = 0; i < 11; i++) {
      await fail(i, refused)
      await pass(20_000)
    }
    expect(made.result).toBe(refused)
    expect(arrived).toHaveLength(11)
  })

  it("is limited to a hundred retries that earlier calls have earned", async () => {
    const { call, arrived, answer, pass } = world({ retries: 1_000, maxWaitMs: 1_000_000 })
    call()
    await answer(0)
    times(1_500, () => call())
    await pass(0)
    for (const each of arrived.slice(1)) each.settle(new Response(""))
    await pass(0)
    const made = call()
    for (let n = 1_501; made.result === undefined && n < 1_700; n++) {
      await answer(n, 429, REFUSED)
      await pass(1_251)
    }
    expect(arrived).toHaveLength(1_501 + 101)
  })

  it("is earned only by calls that were sent", async () => {
    const { call, arrived, answer, pass } = world({ retries: 100, maxWaitMs: 2_000 })
    for (let i = 0; i < 10; i++) {
      call()
      await answer(i * 2, 429, REFUSED)
      await pass(1_251)
      await answer(i * 2 + 1)
    }
    const spent = call()
    await answer(20, 429, REFUSED)
    await pass(1_251)
    await answer(21, 429, REFUSED)
    expect(spent.result).toBe(429)
    const blocked = call()
    await pass(1_251)
    await answer(22, 429, { "retry-after": "60" })
    expect(blocked.result).toBe(429)
    times(1_000, () => call())
    await pass(80_000)
    const last = call()
    await answer(23, 429, REFUSED)
    expect(last.result).toBe(429)
    expect(arrived).toHaveLength(24)
  })

  it("is reported as impossible if the call may not wait for it", async () => {
    const { api, call, answer, pass } = world({ maxWaitMs: 100 })
    const events: unknown[] = []
    api.on("refused", (event) => events.push(event))
    const made = call()
    await answer(0, 429, { "stripe-should-retry": "true" })
    await pass(0)
    expect(made.result).toBe(429)
    expect(events).toMatchObject([{ isRetried: false, waitMs: undefined }])
  })

  it("stays before later calls in the line", async () => {
    const { call, arrived, answer, pass } = world()
    call("first")
    call("second")
    await answer(0, 429, REFUSED)
    call("third")
    await pass(1_251)
    await answer(1)
    expect(arrived.map(({ url }) => url.slice(17))).toEqual(["first", "first", "second", "third"])
  })

  it("that finds the queue full after its pause passes the previous outcome to the caller", async () => {
    const { call, arrived, answer, fail, pass } = world({ maxWaiting: 1 })
    const open = call("open")
    await answer(0)
    const [broken, unsure] = [call("broken"), call("unsure")]
    await fail(1, refused)
    await answer(2, 429, { "stripe-should-retry": "true" })
    // The gate learns from a call that stalls, and another call fills the line.
    const blocker = call("blocker")
    await answer(3, 429, { "retry-after": "1" })
    await pass(2_000)
    expect(arrived.length).toBeGreaterThan(3)
    call("fills the line")
    await pass(2_000)
    expect([open.result, broken.result, unsure.result, blocker.result]).toEqual([
      200,
      refused,
      429,
      undefined,
    ])
  })

  it("that finds the queue full passes the refusal to the caller", async () => {
    const { call, answer } = world({ maxWaiting: 1 })
    const made = call()
    await answer(0, 200, left(50, 60))
    const [refusedCall, other] = [call(), call()]
    await answer(1, 429, { "retry-after": "2" })
    await answer(2, 429, { "retry-after": "2" })
    expect([made.result, refusedCall.result, other.result]).toEqual([200, undefined, 429])
  })
})

describe("the advice of a Sluice server", () => {
  const problem = (retry: unknown) =>
    JSON.stringify({ detail: "Quota exceeded", rejection: "Upgrade your plan", retry })
  const json = { "retry-after": "1", "content-type": "application/problem+json" }
  const backoff = {
    kind: "exponential-backoff",
    initialDelaySeconds: 1,
    multiplier: 2,
    maxDelaySeconds: 3,
    jitter: 0,
  }

  it("to back off doubles the wait of each attempt, up to the longest wait", async () => {
    const { call, arrived, answer, pass } = world()
    call()
    for (const [attempt, seconds] of [1, 2, 3].entries()) {
      await answer(attempt, 429, json, problem(backoff))
      await pass(seconds * 1_000 - 1)
      expect(arrived).toHaveLength(attempt + 1)
      await pass(seconds * 250 + 2)
      expect(arrived).toHaveLength(attempt + 2)
    }
  })

  it("to back off until the next month lengthens the wait by minutes, and not by days", async () => {
    const waitS = 10 * 86_400
    const { call, arrived, answer, pass } = world({ maxWaitMs: 2 * waitS * 1_000 })
    call()
    const month = { ...backoff, initialDelaySeconds: waitS, maxDelaySeconds: 31 * 86_400, jitter: 0.5 }
    await answer(0, 429, { ...json, "retry-after": String(waitS) }, problem(month))
    await pass(waitS * 1_000 - 1)
    expect(arrived).toHaveLength(1)
    await pass(46 * 60_000)
    expect(arrived).toHaveLength(2)
  })

  it("is cut to 500 characters, and leaves no timer once it is read", async () => {
    const { call, answer, pass, timers } = world({ retries: 0, maxWaitMs: 100 })
    call()
    await answer(0, 429, json, JSON.stringify({ detail: "x".repeat(900) }))
    expect(timers()).toBe(0)
    const next = call()
    await pass(0)
    expect(next.result).toMatchObject({ detail: "x".repeat(500) })
  })

  it("to wait until an instant is followed", async () => {
    const { call, arrived, answer, pass } = world()
    call()
    await answer(0, 429, json, problem({ kind: "at", at: "2026-11-27T02:00:09Z", afterSeconds: 9 }))
    await pass(8_999)
    expect(arrived).toHaveLength(1)
    await pass(2_300)
    expect(arrived).toHaveLength(2)
  })

  it("to wait longer than the call may wait passes the refusal to the caller, with its body", async () => {
    const { api, answer } = world({ maxWaitMs: 5_000 })
    const events: unknown[] = []
    api.on("refused", (event) => events.push(event))
    const response = api("http://localhost/")
    await answer(0, 429, json, problem({ kind: "fixed", afterSeconds: 9 }))
    expect(await (await response).json()).toMatchObject({ rejection: "Upgrade your plan" })
    expect(events).toMatchObject([{ isRetried: false }])
  })

  it("is part of the error of calls that would wait too long", async () => {
    const { call, answer } = world({ maxWaitMs: 5_000 })
    const [first, second] = [call(), call()]
    await answer(0, 429, { ...json, "retry-after": "60" }, problem(undefined))
    expect([first.result, second.result]).toMatchObject([429, { code: "SLUICE_PACE_WAIT_TOO_LONG" }])
    const third = call()
    await answer(9)
    expect(third.result).toMatchObject({
      name: "PaceError",
      message: expect.stringMatching(
        /^A call of http:\/\/localhost would wait longer than 5000 ms; it may leave in \d\d s\. Try again later, or raise "maxWaitMs"\.$/,
      ),
      key: "http://localhost",
      detail: "Upgrade your plan",
      retryAfterMs: expect.toSatisfy((ms: number) => ms >= 60_000 && ms <= 75_000),
    })
  })

  it.each([
    ["of another type", { "content-type": "text/html" }, "<p>no</p>"],
    ["that is not JSON", {}, "{"],
    ["that is null", {}, "null"],
    ["without advice", {}, "{}"],
    ["with wrong advice", {}, problem({ kind: "fixed", afterSeconds: -7 })],
    [
      "that is too large",
      {},
      JSON.stringify({ pad: "x".repeat(70_000), retry: { kind: "fixed", afterSeconds: 9 } }),
    ],
  ])("in a body %s is ignored", async (_name, headers, body) => {
    const { call, arrived, answer, pass } = world()
    call()
    await answer(0, 429, { ...json, ...headers }, body)
    await pass(1_251)
    expect(arrived).toHaveLength(2)
  })

  it("is read to the end, so that the connection is free while the call waits", async () => {
    const { api, arrived, pass } = world()
    void api("http://localhost/")
    await pass(0)
    let pulled = 0
    const pull = (controller: ReadableStreamDefaultController) => {
      controller.enqueue(new Uint8Array(1_000))
      if (++pulled === 20) controller.close()
    }
    const headers = { ...REFUSED, "content-type": "text/html" }
    arrived[0]?.settle(new Response(new ReadableStream({ pull }), { status: 429, headers }))
    await pass(0)
    expect([pulled, arrived.length]).toEqual([20, 1])
  })

  it("is undefined without a body", async () => {
    const { api, arrived, pass } = world()
    void api("http://localhost/")
    await pass(0)
    arrived[0]?.settle(new Response(null, { status: 429, headers: json }))
    await pass(1_251)
    expect(arrived).toHaveLength(2)
  })

  it("in a body that stalls is ignored after a second", async () => {
    const { api, arrived, pass } = world()
    void api("http://localhost/")
    await pass(0)
    arrived[0]?.settle(new Response(new ReadableStream({}), { status: 429, headers: json }))
    await pass(999)
    expect(arrived).toHaveLength(1)
    await pass(300)
    expect(arrived).toHaveLength(2)
  })
})

describe("a call that waits", () => {
  it("fails when it has waited too long, even if the call to learn from stalls", async () => {
    const { call, arrived, pass } = world({ maxWaitMs: 900 })
    call()
    await pass(50)
    const second = call()
    await pass(899)
    expect(second.result).toBeUndefined()
    await pass(1)
    expect(second.result).toMatchObject({ code: "SLUICE_PACE_WAIT_TOO_LONG", retryAfterMs: undefined })
    expect(arrived).toHaveLength(1)
  })

  it("fails immediately if it may not wait, and does not join the queue", async () => {
    const { api, call, pass } = world()
    const waits = vi.fn()
    api.on("wait", waits)
    call()
    const second = call("", { pace: { maxWaitMs: 0 } })
    await pass(0)
    expect(second.result).toMatchObject({ code: "SLUICE_PACE_WAIT_TOO_LONG" })
    expect(waits).not.toHaveBeenCalled()
  })

  it("fails immediately if few units must last longer than it may wait, and reports when it may leave", async () => {
    // With 0.5, the interval has no jitter, so 10 units last 3,000 s.
    const random = vi.spyOn(Math, "random").mockReturnValue(0.5)
    onTestFinished(() => random.mockRestore())
    const { api, call, arrived, answer, timers } = world({ maxWaitMs: 30_000 })
    const [, second, third] = [call(), call(), call()]
    await answer(0, 200, left(10, 3_000, 5_000))
    const fourth = call()
    await answer(0)
    for (const { result } of [second, third, fourth])
      expect(result).toMatchObject({
        code: "SLUICE_PACE_WAIT_TOO_LONG",
        message: expect.stringContaining("it may leave in 300 s"),
      })
    expect(second?.result).toMatchObject({ retryAfterMs: 300_000 })
    expect(api.status()).toMatchObject([{ waiting: 0 }])
    expect([arrived.length, timers()]).toEqual([1, 0])
  })

  it("stays in line while units may become available before it gives up", async () => {
    const { call, arrived, answer, pass } = world({ maxWaitMs: 30_000 })
    const made = [call(), call(), call()]
    await answer(0, 200, left(3, 60, 100))
    await pass(25_000)
    expect(arrived).toHaveLength(2)
    await answer(1, 200, left(100, 60, 100))
    expect(arrived).toHaveLength(3)
    await answer(2)
    expect(made.map(({ result }) => result)).toEqual([200, 200, 200])
  })

  it("fails immediately if the limit of the caller delays it longer than it may wait", async () => {
    const { call, answer, pass } = world({ limit: { limit: 2, window: "1 minute" } })
    const calls = times(6, () => call("", { pace: { maxWaitMs: 70_000 } }))
    await answer(0)
    await pass(0)
    expect(calls.map(({ result }) => (result as PaceError | undefined)?.code)).toEqual([
      ...[undefined, undefined, undefined, undefined],
      ...["SLUICE_PACE_WAIT_TOO_LONG", "SLUICE_PACE_WAIT_TOO_LONG"],
    ])
    expect(calls[5]?.result).toMatchObject({ retryAfterMs: 120_000 })
  })

  it("fails immediately if the queue is full", async () => {
    const { call, pass } = world({ maxWaiting: 2 })
    const calls = times(4, () => call())
    await pass(0)
    expect(calls.map(({ result }) => (result as PaceError | undefined)?.code)).toEqual([
      ...[undefined, undefined, undefined],
      "SLUICE_PACE_LINE_FULL",
    ])
    expect(String(calls[3]?.result)).toBe(
      'PaceError: 2 calls of http://localhost already wait. Send fewer calls, or raise "maxWaiting".',
    )
  })
})

describe("an abort", () => {
  const reason = new Error("no longer needed")
  const aborted = () => AbortSignal.abort(reason)

  it("before the call prevents the call", async () => {
    const { call, arrived, pass } = world()
    const made = call("", { signal: aborted() })
    await pass(0)
    expect(made.result).toBe(reason)
    expect(arrived).toHaveLength(0)
  })

  it("of a call in flight lets the next call leave", async () => {
    const { call, arrived, pass } = world()
    const abort = new AbortController()
    const made = call("", { signal: abort.signal })
    call()
    await pass(0)
    abort.abort(reason)
    await pass(0)
    expect(made.result).toBe(reason)
    expect(arrived).toHaveLength(2)
  })

  it("by the signal of a Request also takes effect", async () => {
    const { api, arrived } = world()
    const request = new Request("http://localhost/", { signal: aborted() })
    await expect(api(request)).rejects.toBe(reason)
    expect(arrived).toHaveLength(0)
  })
})

it("the abort of a call that was sent removes no other call from the queue", async () => {
  const { call, arrived, answer, pass } = world()
  const abort = new AbortController()
  call()
  call("", { signal: abort.signal })
  await answer(0)
  await answer(1, 200, left(0, 9))
  const made = call()
  await pass(0)
  abort.abort(new Error("too late"))
  await pass(12_000)
  expect(arrived).toHaveLength(3)
  await answer(2)
  expect(made.result).toBe(200)
})

it.each(["is sent again", "is aborted"])("a refusal frees its connection when its call %s", async (end) => {
  const { api, arrived, pass } = world()
  const abort = new AbortController()
  const outcome = api("http://localhost/", { signal: abort.signal }).catch((error: Error) => error.message)
  await pass(0)
  const cancel = vi.fn()
  // The body is longer than the part that is read for advice.
  const pull = (controller: ReadableStreamDefaultController) => controller.enqueue(new Uint8Array(10_000))
  arrived[0]?.settle(new Response(new ReadableStream({ pull, cancel }), { status: 429, headers: REFUSED }))
  await pass(0)
  expect(cancel).not.toHaveBeenCalled()
  if (end === "is aborted") abort.abort(new Error("enough"))
  await pass(1_251)
  expect(cancel).toHaveBeenCalledTimes(1)
  expect(arrived).toHaveLength(end === "is aborted" ? 1 : 2)
  arrived[1]?.settle(new Response(""))
  if (end === "is aborted") expect(await outcome).toBe("enough")
})

describe("close", () => {
  it("rejects waiting and later calls, and lets calls in flight finish", async () => {
    const { api, call, answer, pass, timers } = world()
    const [first, second] = times(2, () => call())
    await pass(0)
    api.close()
    const third = call()
    await answer(0)
    expect(first?.result).toBe(200)
    for (const made of [second, third]) expect(made?.result).toMatchObject({ code: "SLUICE_PACE_CLOSED" })
    expect(timers()).toBe(0)
  })

  it("passes the previous refusal to a call that waits for another attempt", async () => {
    const { api, call, answer, pass } = world()
    const [waiting, later] = [call(), call("", { method: "PUT" })]
    await answer(0, 429, REFUSED)
    await pass(1_300)
    await answer(1)
    await pass(0)
    api.close()
    await answer(2, 503, REFUSED)
    expect([waiting.result, later.result]).toEqual([200, 503])
    const other = world()
    const refusedCall = other.call()
    await other.answer(0, 429, REFUSED)
    other.api.close()
    await other.pass(0)
    expect(refusedCall.result).toBe(429)
  })

  it("sends no waiting call, even if the first call could leave", async () => {
    const { api, call, arrived, answer, pass } = world()
    const calls = times(4, () => call())
    await answer(0, 429, REFUSED)
    vi.setSystemTime(Date.now() + 5_000)
    vi.spyOn(performance, "now").mockReturnValue(5_000)
    api.close()
    await pass(0)
    expect(arrived).toHaveLength(1)
    expect(calls.slice(1).map(({ result }) => (result as PaceError).code)).toEqual(
      times(3, () => "SLUICE_PACE_CLOSED"),
    )
    vi.mocked(performance.now).mockRestore()
  })
})

describe("the key", () => {
  it("is a string, so that a promise does not give each call a new gate", async () => {
    const api = paced(fetch, { key: (async () => "a") as never })
    await expect(api("http://localhost/")).rejects.toMatchObject({
      code: "SLUICE_INVALID_OPTION",
      message: "key: this object is not valid. Use a string.",
    })
    expect(api.status()).toEqual([])
  })

  it("is the origin and a fingerprint of the credentials, without the credentials", async () => {
    const { api, call, arrived, pass } = world()
    call("a")
    call("b", { headers: { Authorization: "Bearer secret-1" } })
    call("c", { headers: { Authorization: "Bearer secret-2" } })
    call("d", { headers: { "X-Api-Key": "secret-1" } })
    call("e", { headers: { Authorization: "Bearer secret-1" } })
    call("f", { headers: { Authorization: "Bearer secret-1", "X-Api-Key": "other" } })
    await pass(0)
    expect(arrived).toHaveLength(4)
    const keys = api.status().map(({ key }) => key)
    expect(new Set(keys).size).toBe(4)
    expect(keys[0]).toBe("http://localhost")
    for (const key of keys.slice(1)) expect(key).toMatch(/^http:\/\/localhost#[0-9a-z]{10,14}$/)
  })
})

describe("share", () => {
  it("is called with the key before each attempt, and delays the call", async () => {
    const grants: (() => void)[] = []
    const acquire = vi.fn(
      (_key: string, _signal?: AbortSignal) => new Promise<void>((resolve) => void grants.push(resolve)),
    )
    const { call, arrived, answer, pass, timers } = world({ share: { acquire } })
    const made = call()
    await pass(500)
    expect(acquire.mock.calls).toEqual([["http://localhost", expect.any(AbortSignal)]])
    expect(arrived).toHaveLength(0)
    grants[0]?.()
    await answer(0, 429, REFUSED)
    await pass(1_251)
    expect(arrived).toHaveLength(1)
    grants[1]?.()
    await answer(1)
    expect(made.result).toBe(200)
    expect(timers()).toBe(0)
  })

  it("allows no call while its gate is blocked, or above the limit of the caller", async () => {
    const grants: (() => void)[] = []
    const share = { acquire: () => new Promise<void>((resolve) => void grants.push(resolve)) }
    const { call, arrived, answer, pass } = world({
      share,
      limit: { limit: 3, window: 60_000 },
      maxWaitMs: 100_000,
    })
    times(2, () => call())
    await pass(0)
    grants[0]?.()
    await answer(0, 429, { "retry-after": "20" })
    for (const grant of grants) grant()
    await pass(19_999)
    expect(arrived).toHaveLength(1)
    while (arrived.length < 2) await pass(10)
    expect(performance.now()).toBeLessThanOrEqual(25_010)
    times(5, () => call())
    await answer(1)
    for (const grant of grants) grant()
    await pass(0)
    expect(arrived).toHaveLength(3)
  })

  it("is not called for a call that may not wait for its gate", async () => {
    const acquire = vi.fn(async () => {})
    const { call, answer, pass } = world({ share: { acquire } })
    call()
    await answer(0, 429, { "retry-after": "60" })
    const made = call()
    await pass(0)
    expect(made.result).toMatchObject({ code: "SLUICE_PACE_WAIT_TOO_LONG" })
    expect(acquire).toHaveBeenCalledTimes(1)
  })

  it("that fails causes an error of the call", async () => {
    const cause = new Error("Redis is down")
    const { call, pass, timers } = world({ share: { acquire: () => Promise.reject(cause) } })
    const made = call()
    await pass(0)
    expect(made.result).toMatchObject({ code: "SLUICE_PACE_SHARE_FAILED", key: "http://localhost", cause })
    expect(timers()).toBe(0)
    // The cause contains no message.
    const acquire = () => {
      throw Object.create(null)
    }
    const thrown = world({ share: { acquire } })
    const other = thrown.call()
    await thrown.pass(0)
    expect(other.result).toMatchObject({ code: "SLUICE_PACE_SHARE_FAILED" })
  })

  it("that hangs is aborted when the call has waited too long, or is aborted", async () => {
    const signals: AbortSignal[] = []
    const acquire = (_key: string, signal?: AbortSignal) => {
      signals.push(signal as AbortSignal)
      return new Promise(() => {})
    }
    const { call, answer, pass, timers } = world({
      share: { acquire },
      maxWaitMs: 3_000,
      key: ({ url }) => url,
    })
    const [late, abort] = [call("a"), new AbortController()]
    const aborted = call("b", { signal: abort.signal })
    await pass(0)
    abort.abort(new Error("enough"))
    await pass(3_000)
    expect(late.result).toMatchObject({ code: "SLUICE_PACE_WAIT_TOO_LONG" })
    expect(aborted.result).toEqual(new Error("enough"))
    expect(signals.map((signal) => signal.aborted)).toEqual([true, true])
    await answer(0)
    expect(timers()).toBe(0)
  })
})

describe("options", () => {
  it.each<[unknown, string]>([
    [null, "paced: null is not valid. Use { maxWaitMs, "],
    [
      { maxwait: 1 },
      'paced: "maxwait" is not valid. Use maxWaitMs, maxWaiting, retries, backoffMs, retryBudget, key, idempotent, limit, share.',
    ],
    [{ constructor: 1 }, 'paced: "constructor" is not valid.'],
    [{ maxWaitMs: -1 }, "maxWaitMs: -1 is not valid. Use a whole number from 0 to 2147483647."],
    [{ maxWaiting: 1.5 }, "maxWaiting: 1.5 is not valid."],
    [{ retries: "3" }, "retries: 3 is not valid. Use a whole number from 0 to 1000."],
    [{ backoffMs: 60_001 }, "backoffMs: 60001 is not valid. Use a whole number from 0 to 60000."],
    [{ retryBudget: 2 }, "retryBudget: 2 is not valid. Use a number from 0 to 1."],
    [{ key: "a" }, "key: a is not valid. Use a function of the request."],
    [{ idempotent: {} }, "idempotent: this object is not valid."],
    [{ share: {} }, "share: this object is not valid. Use { acquire(key, signal) }."],
    [
      { limit: { limit: 0, window: "1 minute" } },
      'limit: this object is not valid. Use { limit: 100, window: "1 minute" }',
    ],
    [{ limit: { limit: 5, window: "1 month" } }, "limit: this object is not valid."],
    [{ limit: { limit: 5, window: 0 } }, "limit: this object is not valid."],
    [{ limit: { limit: 5 } }, "limit: this object is not valid."],
    [{ limit: 5 }, "limit: 5 is not valid."],
    [{ maxWaitMs: Symbol("odd") }, "maxWaitMs: Symbol(odd) is not valid."],
  ])("%o are rejected", (options, message) => {
    const create = () => paced(fetch, options as PacedOptions)
    expect(create).toThrow(PaceError)
    expect(create).toThrow(message)
    expect(create).toThrow(expect.objectContaining({ code: "SLUICE_INVALID_OPTION" }))
  })

  it.each<[unknown, string]>([
    [{ wait: 1 }, 'pace: "wait" is not valid. Use key, maxWaitMs, retries.'],
    [{ key: 7 }, "key: 7 is not valid. Use a string."],
    [{ retries: -1 }, "retries: -1 is not valid."],
    [null, "pace: null is not valid."],
  ])("of a call, %o are rejected", async (pace, message) => {
    const { api } = world()
    await expect(api("http://localhost/", { pace: pace as never })).rejects.toThrow(message)
  })
})

it("the paced fetch calls the current global fetch, and passes all arguments except its own option", async () => {
  const global = vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("ok"))
  const api = paced()
  await api(new URL("http://localhost/a"), { method: "PUT", pace: { retries: 0 }, keepalive: true })
  expect(global.mock.calls).toEqual([["http://localhost/a", { method: "PUT", keepalive: true }]])
  global.mockRestore()
})

describe("the arguments", () => {
  it("are read immediately, although a call leaves later", async () => {
    const { api, arrived, answer } = world()
    const url = new URL("http://localhost/")
    const headers = new Headers()
    for (const page of ["1", "2"]) {
      url.searchParams.set("page", page)
      headers.set("X-Page", page)
      void api(url, { headers })
    }
    await answer(0)
    expect(arrived.map((each) => each.url)).toEqual(["http://localhost/?page=1", "http://localhost/?page=2"])
    expect(arrived.map(({ init }) => new Headers(init.headers).get("x-page"))).toEqual(["1", "2"])
  })

  it.each([undefined, { retries: 0 }])("can be a URL and a Request, with pace %o", async (pace) => {
    const { api, arrived, pass } = world()
    const request = new Request("http://other/", {
      method: "POST",
      body: "text",
      headers: { authorization: "t" },
    })
    void api(
      "http://localhost/x",
      pace === undefined ? request : { ...{ method: "POST", body: "text" }, pace },
    )
    await pass(0)
    const sent = new Request(arrived[0]?.input as string, arrived[0]?.init)
    expect([sent.url, sent.method, await sent.text()]).toEqual(["http://localhost/x", "POST", "text"])
    expect(sent.headers.get("authorization")).toBe(pace === undefined ? "t" : null)
  })

  it("detach the signal of a Request with null", async () => {
    const { api, answer } = world()
    const request = new Request("http://localhost/", { signal: AbortSignal.abort() })
    const response = api(request, { signal: null })
    await answer(0)
    expect((await response).status).toBe(200)
  })
})

it("the paced fetch returns a value that is not a Response, and lets the next call leave", async () => {
  const api = paced((async () => ({ ok: true })) as never, { maxWaitMs: 100 })
  expect(await Promise.all([api("http://localhost/"), api("http://localhost/")])).toEqual([
    { ok: true },
    { ok: true },
  ])
})

it("the paced fetch adds only one listener to a signal of many calls", async () => {
  const { call, answer } = world()
  const { signal } = new AbortController()
  call("", { signal })
  const calls = times(30, () => call("", { signal }))
  expect(getEventListeners(signal, "abort").length).toBeLessThanOrEqual(1)
  await answer(0)
  for (let i = 1; i <= 30; i++) await answer(i)
  expect(calls.every(({ result }) => result === 200)).toBe(true)
})

it("the paced fetch accepts null as options, as fetch does", async () => {
  const { api, answer } = world()
  const response = api("http://localhost/", null as never)
  await answer(0)
  expect((await response).status).toBe(200)
})

it("the paced fetch rejects a wrong URL as fetch does", async () => {
  await expect(paced()("not a url")).rejects.toThrow(TypeError)
})
