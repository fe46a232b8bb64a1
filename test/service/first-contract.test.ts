import { fileURLToPath } from "node:url"
import { rulesInMemory } from "@sluice/service"
import { expect, it, onTestFinished } from "vitest"
import { startService } from "./started.ts"
import { openStranger } from "./stranger.ts"

const FIRST = fileURLToPath(new URL("../fixtures/first-contract.proto", import.meta.url))

it("a client generated from the first contract can register a rule and get decisions", async () => {
  const started = await startService(rulesInMemory())
  const client = openStranger(started.grpc, FIRST, "sluice.v1.RateLimiter")
  onTestFinished(async () => {
    client.close()
    await started.stop()
    expect(started.faults).toEqual([])
  })
  const registered = await client.call("RegisterService", {
    serviceId: 7,
    rule: { field: "user_id", rate: { requestsPerUnit: 2, unit: "day" }, errorMessage: "enough for today" },
  })
  expect(registered).toEqual({ value: { status: { code: 0, message: "" }, error: "" } })
  const asked = { serviceId: 7, request: '{"user_id":"ada"}' }
  for (const shouldForward of [true, true, false]) {
    expect(await client.call("ShouldForwardRequest", asked)).toEqual({ value: { shouldForward } })
  }

  // The service stored what the request contained, as a current client reads it.
  const now = openStranger(started.grpc, "sluice/v1/rate_limiter.proto", "sluice.v1.RateLimiter")
  const { rules } = ((await now.call("GetService", { service_id: 7 })) as { value: { rules: object[] } })
    .value
  now.close()
  expect(rules).toMatchObject([
    { field: "user_id", rate: { requests_per_unit: 2, unit: "day" }, error_message: "enough for today" },
  ])
})
