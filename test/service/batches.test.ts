import { rulesInMemory } from "@sluice/service"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { post } from "./post.ts"
import { type Started, startService } from "./started.ts"
import { openStranger, type Stranger } from "./stranger.ts"

const MANY = 10_000
const SINGLE = "ShouldForwardRequest"
const BATCH = "ShouldForwardRequests"

/** Counts the decisions of a service, in total and in each turn of the event loop. */
class Decisions {
  count = 0
  mostInTurn = 0
  #onFirst: (() => void) | undefined
  #before = 0
  #isWatching = true

  constructor() {
    const watch = (): void => {
      this.mostInTurn = Math.max(this.mostInTurn, this.count - this.#before)
      this.#before = this.count
      if (this.#isWatching) setImmediate(watch)
    }
    watch()
  }

  readonly made = (): void => {
    this.count++
    this.#onFirst?.()
    this.#onFirst = undefined
  }

  /** Resolves when the next decision has been made. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#onFirst = resolve
    })
  }

  stop(): void {
    this.#isWatching = false
  }
}

describe("a batch of many requests", () => {
  let decisions: Decisions
  let started: Started
  let stranger: Stranger
  beforeEach(async () => {
    decisions = new Decisions()
    const home = rulesInMemory()
    await home.registry.register("shop", [
      { name: "units", field: "user", limit: 1_000_000, window: "1 day" },
    ])
    started = await startService(home, {
      bounds: { maxMessageBytes: 4 * 2 ** 20, maxInFlight: 1_000, maxRequests: MANY, arrivalMs: 10_000 },
      onLimiter: (limiter) => limiter.on("decision", decisions.made),
    })
    stranger = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
    // Send first calls, so that the service has created its limiter and both clients are connected.
    await Promise.all([single.gRPC("first"), single.HTTP("first")])
    decisions.count = 0
  })
  afterEach(async () => {
    decisions.stop()
    stranger.close()
    await started.stop()
    expect(started.faults).toEqual([])
  })

  const asked = (user: string): object => ({ service: "shop", request: JSON.stringify({ user }) })
  const batchOf = (count: number, name: string): object => ({
    requests: Array.from({ length: count }, (_, index) => asked(`${name}-${index}`)),
    brief: true,
  })
  const byHttp = async (method: string, body: object) =>
    (await post(started, `/sluice.v1.RateLimiter/${method}`, body)).body
  const byGrpc = async (method: string, request: object): Promise<Record<string, unknown>> => {
    const called = await stranger.call(method, request)
    return "value" in called ? called.value : { code: called.error.code }
  }
  const single = {
    gRPC: (user: string) => byGrpc(SINGLE, asked(user)),
    HTTP: (user: string) => byHttp(SINGLE, asked(user)),
  }
  const batch = {
    gRPC: (count: number, name: string) => byGrpc(BATCH, batchOf(count, name)),
    HTTP: (count: number, name: string) => byHttp(BATCH, batchOf(count, name)),
  }
  const DOORS = ["gRPC", "HTTP"] as const

  it.each(DOORS)(
    "lets a single call over %s finish before a quarter of the batch is decided",
    async (door) => {
      const begun = decisions.next()
      const answers = batch.gRPC(MANY, "many")
      await begun
      await single[door]("innocent")
      expect(decisions.count).toBeLessThan(MANY / 4)
      expect((await answers).responses).toHaveLength(MANY)
      expect(decisions.count).toBe(MANY + 1)
    },
  )

  it.each(DOORS)("is decided over %s in turns of at most 256 requests", async (door) => {
    await batch[door](MANY, "many")
    expect(decisions.count).toBe(MANY)
    expect(decisions.mostInTurn).toBeLessThanOrEqual(256)
  })

  it("shares its turns with other batches", async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, index) => batch.gRPC(111, `each-${index}`)),
    )
    for (const { responses } of answers) expect(responses).toHaveLength(111)
    expect(decisions.count).toBe(666)
    expect(decisions.mostInTurn).toBeLessThanOrEqual(256)
  })

  it("does not make a small batch wait until the large batch ends", async () => {
    const begun = decisions.next()
    const large = batch.gRPC(MANY, "large")
    await begun
    // Send the small batch over the other server, whose bounds are separate.
    const { responses } = await batch.HTTP(100, "small")
    expect(responses).toHaveLength(100)
    expect(decisions.count).toBeLessThan(MANY / 2)
    await large
  })

  it.each(DOORS)(
    "is accepted when no other call is in flight, and counts each of its requests over %s",
    async (door) => {
      const begun = decisions.next()
      const first = batch[door](MANY, "first")
      await begun
      const second = await batch[door](1, "second")
      expect(second.responses).toBeUndefined()
      expect(second.code).toBeDefined()
      expect((await first).responses).toHaveLength(MANY)
      expect((await batch[door](2, "third")).responses).toHaveLength(2)
    },
  )

  it("stops and takes no units when its caller hangs up", async () => {
    const begun = decisions.next()
    const hangUp = new AbortController()
    const answer = fetch(`${started.http}/sluice.v1.RateLimiter/${BATCH}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ requests: Array.from({ length: MANY }, () => asked("gone")) }),
      signal: hangUp.signal,
    })
    await begun
    hangUp.abort()
    await expect(answer).rejects.toThrow("abort")
    const peek = { ...asked("gone"), peek: true }
    await until("its units are back", async () => (await byHttp(SINGLE, peek)).remaining === "1000000")
    expect(decisions.count).toBeLessThan(MANY / 4)
  })
})
