import { expect, it } from "vitest"
import { serviceLog } from "./service-log.ts"

it("what is about the store of all services is told of no single one", () => {
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

it("where there is no logger there is none for a service", () => {
  expect(serviceLog(undefined, "shop")).toBeUndefined()
})
