import { afterEach, expect, it, vi } from "vitest"
import { fromEnvironment } from "./surroundings.ts"

afterEach(() => void vi.unstubAllEnvs())

it.each([undefined, ""])("the examples count in memory if REDIS_URL is %j", (url) => {
  vi.stubEnv("REDIS_URL", url)
  expect(fromEnvironment()).toEqual({ trustedProxies: 0 })
})

it.each([
  [undefined, 0],
  ["", 0],
  ["2", 2],
])("the examples interpret a TRUSTED_PROXIES of %j as %i trusted proxies", (proxies, trustedProxies) => {
  vi.stubEnv("REDIS_URL", undefined)
  vi.stubEnv("TRUSTED_PROXIES", proxies)
  expect(fromEnvironment()).toEqual({ trustedProxies })
})
