import { Redis } from "ioredis"
import { createClient } from "redis"
import { expect, it } from "vitest"
import { parseOptions, type RedisStoreOptions } from "../../packages/redis/src/options.ts"

it("a client that is passed instead of options is rejected, without its password in the error", () => {
  const clients = [new Redis({ password: "secret", lazyConnect: true }), createClient({ password: "secret" })]
  for (const client of clients) {
    expect(() => parseOptions(client as unknown as RedisStoreOptions)).toThrow(
      /the client itself is not an options object(?!.*secret)/s,
    )
  }
})
