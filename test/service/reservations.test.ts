import { type Limiter, memoryStore, type Store } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import { rulesInMemory } from "@sluice/service"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { until } from "../servers/until.ts"
import { DOORS_AND_CONNECT, type Door } from "./door-clients.ts"
import { post } from "./post.ts"
import { FORWARD } from "./questions.ts"
import { openService, type Started, startService } from "./started.ts"

const INVALID_ARGUMENT = 3
const FAILED_PRECONDITION = 9

const RULES = [
  { name: "rpm", field: "user", limit: 60, window: "1 day" },
  { name: "tpm", field: "user", limit: 1_000, window: "1 day", counts: "tokens" },
  { name: "five", field: "user", concurrent: 5, hold: "4 seconds" },
]
const FULL = { rpm: 60, tpm: 1_000, five: 5 }

interface Reserved {
  readonly should_forward: boolean
  readonly reservation: string
  readonly renew_within_ms: number
}

/** What a call answers in the place of one reservation. */
interface Placed {
  readonly settled?: boolean
  readonly reservation?: string
  readonly renew_within_ms?: number
  readonly error?: { readonly code: number; readonly message: string } | null
}

async function chat(service = "chat") {
  const home = rulesInMemory()
  await home.registry.register(service, RULES)
  return home
}

describe.each(DOORS_AND_CONNECT)("a reservation over %s", (_name, open) => {
  const clock = manualClock(Date.now())
  const ends: string[] = []
  let home: Awaited<ReturnType<typeof chat>>
  let started: Started
  let door: Door
  beforeEach(async () => {
    home = await chat()
    ends.length = 0
    const shared = { store: memoryStore({ clock }), clock, storeTimeoutMs: 20_000 }
    started = await startService(home, { shared, onSettlement: (end) => ends.push(end) })
    door = open(started)
  })
  afterEach(async () => {
    door.close()
    await started.stop()
    expect(started.faults).toEqual([])
  })

  const asked = (more = {}) => ({
    service: "chat",
    request: '{"user":"ada"}',
    units: { tokens: 100 },
    ...more,
  })
  const reserve = async (more = {}) =>
    (await door.call("ShouldForwardRequest", asked({ reserve: true, ...more }))).value as unknown as Reserved
  const settleAll = async (settlements: readonly object[]) =>
    (await door.call("Settle", { settlements })).value.results as Placed[]
  const settle = async (reservation: string, more = {}) =>
    (await settleAll([{ reservation, ...more }]))[0] as Placed
  const renew = async (...reservations: string[]) =>
    (await door.call("Renew", { reservations })).value.renewals as Placed[]
  const left = async () => {
    const all = RULES.map(async ({ name }) => {
      const { value } = await door.call("ShowClient", { service: "chat", rule: name, client: ["ada"] })
      return [name, value.remaining ?? 0]
    })
    return Object.fromEntries(await Promise.all(all))
  }

  it("gives permits back and corrects units when it is settled, once", async () => {
    const { reservation, renew_within_ms } = await reserve()
    expect(reservation).toMatch(/^[\w-]{100,600}$/)
    expect(renew_within_ms).toBeGreaterThan(0)
    expect(renew_within_ms).toBeLessThanOrEqual(4_000)
    expect(await left()).toEqual({ rpm: 59, tpm: 900, five: 4 })
    expect(await settle(reservation, { used: { tokens: 30 } })).toMatchObject({ settled: true })
    expect(await left()).toEqual({ rpm: 59, tpm: 970, five: 5 })
    const again = await settle(reservation, { used: { tokens: 30 } })
    expect(again.error ?? null).toBeNull()
    expect(again.settled ?? false).toBe(false)
    expect(await left()).toEqual({ rpm: 59, tpm: 970, five: 5 })
    expect(ends).toEqual(["settled", "repeated"])
  })

  it("gives back everything if it is refunded, and only permits without used units", async () => {
    await settle((await reserve()).reservation, { refund: true })
    expect(await left()).toEqual(FULL)
    await settle((await reserve()).reservation)
    expect(await left()).toEqual({ rpm: 59, tpm: 900, five: 5 })
  })

  it("keeps its permits as long as it is renewed", async () => {
    let { reservation, renew_within_ms } = await reserve()
    for (let times = 0; times < 5; times++) {
      clock.advance(renew_within_ms - 1)
      expect((await left()).five).toBe(4)
      const [renewed] = (await renew(reservation)) as unknown as [Reserved]
      ;({ reservation, renew_within_ms } = renewed)
    }
    expect(await settle(reservation, { used: { tokens: 0 } })).toMatchObject({ settled: true })
    expect(await left()).toEqual({ rpm: 59, tpm: 1_000, five: 5 })
  })

  it("cannot be renewed after it was settled", async () => {
    const { reservation } = await reserve()
    await settle(reservation)
    const [renewed] = await renew(reservation)
    expect(renewed?.error).toMatchObject({
      code: FAILED_PRECONDITION,
      message: expect.stringContaining("settled before"),
    })
    expect((await left()).five).toBe(5)
  })

  it("is too old after ten minutes, and then holds no permits", async () => {
    const { reservation } = await reserve()
    clock.advance(600_001)
    const late = { code: FAILED_PRECONDITION, message: expect.stringContaining("too old") }
    expect((await settle(reservation, { refund: true })).error).toMatchObject(late)
    expect((await renew(reservation))[0]?.error).toMatchObject(late)
    expect(await left()).toEqual({ rpm: 59, tpm: 900, five: 5 })
    expect(ends).toEqual(["late"])
  })

  it("is not given to refused requests, peeks, and callers that do not ask for it", async () => {
    const answers = [await reserve({ peek: true }), await reserve({ reserve: false })]
    for (let times = 0; times < 5; times++) await reserve()
    answers.push(await reserve())
    expect(answers.map(({ should_forward }) => should_forward ?? false)).toEqual([true, true, false])
    expect(answers.map(({ reservation }) => reservation ?? "")).toEqual(["", "", ""])
  })

  it("has its own place in every batch, also in a brief one", async () => {
    await home.registry.register("other", RULES)
    const requests = [asked({ reserve: true }), asked(), asked({ service: "other", reserve: true })]
    for (const how of [{}, { brief: true }, { brief: true, all_or_nothing: true }]) {
      const own = "all_or_nothing" in how ? [requests[0], requests[2]] : requests
      const { value } = await door.call("ShouldForwardRequests", { requests: own, ...how })
      const texts = (value.responses as Reserved[]).map(({ reservation }) => reservation ?? "")
      const shown = texts.map((text) => JSON.parse(Buffer.from(text, "base64url").toString() || "[0,0]")[1])
      expect(shown).toEqual("all_or_nothing" in how ? ["chat", "other"] : ["chat", 0, "other"])
      const results = await settleAll(texts.filter(Boolean).map((reservation) => ({ reservation })))
      expect(results.map(({ settled }) => settled)).toEqual([true, true])
    }
    expect((await left()).five).toBe(5)
  })

  it("takes the place of its error in a list", async () => {
    const [first, second] = [await reserve(), await reserve()]
    const results = await settleAll([
      { reservation: first.reservation },
      { reservation: "bm9uc2Vuc2U" },
      { reservation: "" },
      { reservation: "A".repeat(8_193) },
      { reservation: second.reservation, used: { "concurrent-requests": 0 } },
      { reservation: first.reservation },
      { reservation: second.reservation, used: { requests: 2, unknown: 5 } },
    ])
    expect(results.map(({ settled, error }) => error?.code ?? settled ?? false)).toEqual([
      ...[true, INVALID_ARGUMENT, INVALID_ARGUMENT, INVALID_ARGUMENT, INVALID_ARGUMENT],
      ...[false, true],
    ])
    expect(results[1]?.error?.message).toMatch(/^reservation: is not a reservation/)
    expect(results[4]?.error?.message).toMatch(/^used\.concurrent-requests: is not a unit here/)
    expect(await left()).toEqual({ rpm: 57, tpm: 800, five: 5 })
    expect(ends).toEqual(["settled", ...Array(4).fill("invalid"), "repeated", "settled"])
    const [renewed, failed] = await renew((await reserve()).reservation, "AAAA")
    expect(renewed?.reservation).toMatch(/^[\w-]{100,}$/)
    expect(failed?.error?.code).toBe(INVALID_ARGUMENT)
  })

  it("has at most 1,000 others in its list", async () => {
    const { reservation } = await reserve()
    const all = Array.from({ length: 1_000 }, () => ({ reservation }))
    const settled = (await settleAll(all)).map((each) => each.settled ?? false)
    expect(settled.filter(Boolean)).toHaveLength(1)
    for (const [method, list, field] of [
      ["Settle", [...all, { reservation }], "settlements"],
      ["Renew", Array.from({ length: 1_001 }, () => reservation), "reservations"],
      ["Settle", Array.from({ length: 2_001 }, () => ({ reservation: "a" })), "settlements"],
    ] as const) {
      const { code, message } = await door.call(method, { [field]: list })
      expect(code).toBe(INVALID_ARGUMENT)
      expect(message).toContain("at most 1000 are accepted")
    }
  })

  it("skips a rule that is gone, and a service that is gone", async () => {
    const [first, second] = [await reserve(), await reserve()]
    const { version } = (await home.registry.get("chat")) as { version: number }
    await door.call("RegisterService", {
      service: "chat",
      rules: [{ name: "rpm", field: "user", limit: 60, window: "1 day" }],
      version,
    })
    expect(await settle(first.reservation, { refund: true })).toMatchObject({ settled: true })
    const { value } = await door.call("ShowClient", { service: "chat", rule: "rpm", client: ["ada"] })
    expect(value.remaining).toBe(59)
    await door.call("RemoveService", { service: "chat", overwrite: true })
    expect(await settle(second.reservation, { refund: true })).toMatchObject({ settled: true })
    expect((await renew(second.reservation))[0]).toMatchObject({ reservation: second.reservation })
  })
})

it("callers that never settle leave no permits, in an hour of them", async () => {
  const clock = manualClock(Date.now())
  const limiters: Limiter<never>[] = []
  const started = await openService(await chat(), {
    shared: { store: memoryStore({ clock }), clock, storeTimeoutMs: 20_000 },
    onLimiter: (limiter) => void limiters.push(limiter as never),
  })
  for (let seconds = 0; seconds < 3_600; seconds += 4) {
    const request = { service: "chat", request: { user: "ada" }, cost: 0, reserve: true }
    const more = { ...request, cost: 1, units: { tokens: 0 }, request: { user: `${seconds}` } }
    for (const each of [request, more]) {
      expect((await post(started, FORWARD, each)).body.shouldForward).toBe(true)
    }
    clock.advance(4_000)
  }
  expect(limiters[0]?.status).toMatchObject({ inFlight: 0, permits: { five: { held: 0, renewed: 0 } } })
  const shown = await post(started, FORWARD.replace("ShouldForwardRequest", "ShowClient"), {
    ...{ service: "chat", rule: "five", client: ["3596"] },
  })
  expect(shown.body.remaining).toBe("5")
})

it("a list of settlements occupies a place for each, so that few calls cannot keep the store busy", async () => {
  const memory = memoryStore()
  let isSettling = false
  let settle = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    settle = resolve
  })
  const store: Store = {
    ...{ isShared: true, close() {}, read: (checks) => memory.read(checks) },
    ...{ refund: (refunds) => memory.refund(refunds), reset: (keys) => memory.reset(keys) },
    async take(checks) {
      if (checks.some(({ policy }) => policy.counter === "reservation")) {
        isSettling = true
        await gate
      }
      return memory.take(checks)
    },
  }
  const bounds = { maxMessageBytes: 100_000, maxInFlight: 4, maxRequests: 20, arrivalMs: 10_000 }
  const started = await openService(await chat(), { shared: { store, storeTimeoutMs: 20_000 }, bounds })
  const asked = { service: "chat", request: { user: "ada" }, reserve: true }
  const { reservation } = (await post(started, FORWARD, asked)).body
  const path = FORWARD.replace("ShouldForwardRequest", "Settle")
  const settlements = Array(3).fill({ reservation })
  const first = post(started, path, { settlements })
  await until("the first list is being settled", () => isSettling)
  expect((await post(started, path, { settlements })).status).toBe(503)
  settle()
  const results = (await first).body.results as Placed[]
  expect(results.filter(({ settled }) => settled)).toHaveLength(1)
  expect((await post(started, path, { settlements })).status).toBe(200)
})
