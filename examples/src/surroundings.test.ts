import { afterEach, expect, it, vi } from "vitest"
import { fromEnvironment } from "./surroundings.ts"

afterEach(() => void vi.unstubAllEnvs())

it.each([undefined, ""])("counters are in memory where REDIS_URL is %j", (url) => {
  vi.stubEnv("REDIS_URL", url)
  expect(fromEnvironment()).toEqual({ trustedProxies: 0 })
})

it.each([
  [undefined, 0],
  ["", 0],
  ["2", 2],
])("where TRUSTED_PROXIES is %j, %i stand in front", (proxies, trustedProxies) => {
  vi.stubEnv("REDIS_URL", undefined)
  vi.stubEnv("TRUSTED_PROXIES", proxies)
  expect(fromEnvironment()).toEqual({ trustedProxies })
})
