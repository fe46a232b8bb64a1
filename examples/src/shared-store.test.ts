import { afterEach, expect, it, vi } from "vitest"
import { sharedStore } from "./shared-store.ts"

afterEach(() => void vi.unstubAllEnvs())

it.each([undefined, ""])("counters are in memory where REDIS_URL is %j", (url) => {
  vi.stubEnv("REDIS_URL", url)
  expect(sharedStore()).toEqual({})
})
