import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { post } from "./post.ts"
import { FORWARD } from "./questions.ts"
import { TWO_SERVICES, useService } from "./started.ts"
import { openStranger, type Stranger } from "./stranger.ts"

describe("the contract's two items", () => {
  const started = useService(TWO_SERVICES)
  let stranger: Stranger
  beforeAll(() => {
    stranger = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  })
  afterAll(() => stranger.close())

  const ask = async (serviceId: number, request: object): Promise<Readonly<Record<string, unknown>>> => {
    const called = await stranger.call("ShouldForwardRequest", {
      service_id: serviceId,
      request: JSON.stringify(request),
    })
    if ("error" in called) throw called.error
    return called.value
  }

  it("apply over gRPC, so each user of service 1 may send five requests a minute", async () => {
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

  it("apply over HTTP, so service 2 may receive ten requests a day in total", async () => {
    const overHttp = async (body: object) => (await post(started, FORWARD, body)).body
    for (let asked = 1; asked <= 9; asked++)
      expect(await overHttp({ serviceId: 2 })).toMatchObject({ shouldForward: true })
    expect(await ask(2, { user_id: "ada" })).toMatchObject({ should_forward: true, remaining: 0 })
    expect(await overHttp({ serviceId: 2, request: "" })).toMatchObject({
      shouldForward: false,
      rejectionMessage: "exhausted-daily-limit",
      policy: "daily",
    })
  })
})
