import { expect, it } from "vitest"
import { serviceLog } from "./service-log.ts"

it("adds the service to log lines, except to those about the shared store", () => {
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

it("is undefined if there is no logger", () => {
  expect(serviceLog(undefined, "shop")).toBeUndefined()
})
