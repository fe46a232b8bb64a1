import { fileURLToPath } from "node:url"
import { rulesInMemory } from "@sluice/service"
import { expect, it, onTestFinished } from "vitest"
import { openService } from "./started.ts"
import { openStranger } from "./stranger.ts"

const FIRST = fileURLToPath(new URL("../fixtures/first-contract.proto", import.meta.url))

it("a client generated from the first contract can register a rule and get decisions", async () => {
  const started = await openService(rulesInMemory())
  const client = openStranger(started.grpc, FIRST, "sluice.v1.RateLimiter")
  onTestFinished(() => client.close())
  const register = (requestsPerUnit: number) =>
    client.call("RegisterService", {
      serviceId: 7,
      rule: { field: "user_id", rate: { requestsPerUnit, unit: "day" }, errorMessage: "enough for today" },
    })
  const registered = { value: { status: { code: 0, message: "" }, error: "" } }
  expect(await register(2)).toEqual(registered)
  const asked = { serviceId: 7, request: '{"user_id":"ada"}' }
  for (const shouldForward of [true, true, false]) {
    expect(await client.call("ShouldForwardRequest", asked)).toEqual({ value: { shouldForward } })
  }

  // The service stores the rule of the request, and a current client can read this rule. Registering the same rule
  // again does not create a new version.
  const now = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  onTestFinished(() => now.close())
  for (const [version, limit] of [
    [1, 2],
    [2, 3],
  ] as const) {
    expect(await register(limit)).toEqual(registered)
    const rate = { requests_per_unit: limit, unit: "day" }
    expect(await now.call("GetService", { service_id: 7 })).toMatchObject({
      value: { version, rules: [{ field: "user_id", rate, error_message: "enough for today" }] },
    })
  }
})
