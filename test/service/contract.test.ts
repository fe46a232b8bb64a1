import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Started, startService, TWO_SERVICES } from "./started.ts"
import { openStranger, type Stranger } from "./stranger.ts"

describe("the contract's two items", () => {
  let started: Started
  let stranger: Stranger
  beforeAll(async () => {
    started = await startService(TWO_SERVICES)
    stranger = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  })
  afterAll(async () => {
    stranger.close()
    await started.stop()
    expect(started.faults).toEqual([])
  })

  const ask = async (serviceId: number, request: object): Promise<Readonly<Record<string, unknown>>> => {
    const called = await stranger.call("ShouldForwardRequest", {
      service_id: serviceId,
      request: JSON.stringify(request),
    })
    if ("error" in called) throw called.error
    return called.value
  }

  it("hold over gRPC: five requests a minute for each user of service 1", async () => {
    for (let asked = 1; asked <= 5; asked++) {
      expect(await ask(1, { user_id: "ada" })).toMatchObject({ should_forward: true, remaining: 5 - asked })
    }
    expect(await ask(1, { user_id: "ada" })).toMatchObject({
      should_forward: false,
      rejection_message: "retry-with-exponential-backoff",
      policy: "per-user",
      limit: 5,
      remaining: 0,
      status_code: 429,
    })
    expect(await ask(1, { user_id: "bob" })).toMatchObject({ should_forward: true, remaining: 4 })
  })

  it("hold over HTTP: ten requests a day for service 2, regardless of the user", async () => {
    const post = async (body: object) => {
      const response = await fetch(`${started.http}/sluice.v1.RateLimiter/ShouldForwardRequest`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      })
      return (await response.json()) as Readonly<Record<string, unknown>>
    }
    for (let asked = 1; asked <= 9; asked++)
      expect(await post({ serviceId: 2 })).toMatchObject({ shouldForward: true })
    expect(await ask(2, { user_id: "ada" })).toMatchObject({ should_forward: true, remaining: 0 })
    expect(await post({ serviceId: 2, request: "" })).toMatchObject({
      shouldForward: false,
      rejectionMessage: "exhausted-daily-limit",
      policy: "daily",
    })
  })
})
