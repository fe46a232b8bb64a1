import { createLimiter } from "@sluice/core"
import { expect, it } from "vitest"
import { serviceLog } from "./service-log.ts"

it("serviceLog adds the service to log lines, except to those about the shared store", () => {
  const told: unknown[] = []
  const tell = (fields: object, message: string): void => void told.push([fields, message])
  const log = serviceLog({ warn: tell, error: tell }, "shop")
  log?.error({ code: "SLUICE_DEGRADED" }, "gone")
  log?.warn({ code: "SLUICE_RECOVERED" }, "back")
  log?.warn({ code: "SLUICE_INVALID_COST" }, "wrong")
  expect(told).toEqual([
    [{ code: "SLUICE_DEGRADED" }, "gone"],
    [{ code: "SLUICE_RECOVERED" }, "back"],
    [{ code: "SLUICE_INVALID_COST", service: "shop" }, "wrong"],
  ])
})

it("serviceLog explains what callers should send if they never send a field", async () => {
  const told: string[] = []
  const tell = (_fields: object, message: string): void => void told.push(message)
  const logger = serviceLog({ warn: tell, error: tell }, "shop")
  const limiter = createLimiter({
    ...{ limit: 9, window: "1 minute", name: "per-user", field: "user" },
    ...{ fields: () => () => undefined, logger },
  })
  for (let i = 0; i < 20; i++) await limiter.decide({ remoteAddress: "192.0.2.1" })
  expect(told).toEqual([
    'Rule "per-user" counts by "user", which was missing in each of its first 20 requests. Such requests count by their address. ' +
      'Callers do not send it: put it into "request" under this name. (@sluice/core/errors/sluice_field_missing.md)',
  ])
})

it("serviceLog returns undefined if there is no logger", () => {
  expect(serviceLog(undefined, "shop")).toBeUndefined()
})
