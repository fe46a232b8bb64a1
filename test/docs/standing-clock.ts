import type { Clock } from "@sluice/core"
import { manualClock } from "@sluice/core/testing"
import type { SluiceStoreOptions, SluiceStore as Store } from "@sluice/express-rate-limit-store"
import type { Redis } from "ioredis"
import { onTestFinished } from "vitest"

type Exports = Readonly<Record<string, unknown>>
type Options = Readonly<Record<string, unknown>>
interface Closable {
  close(): Promise<void>
}

/** The functions that accept a clock, by module, with the index of their options argument. */
const MAKERS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  "@sluice/core": { createLimiter: 0, memoryStore: 0 },
  "@sluice/redis": { redisStore: 0 },
  "@sluice/express": { rateLimit: 0 },
  "@sluice/koa": { rateLimit: 0 },
  "@sluice/fetch/hono": { rateLimit: 0 },
  // Fastify calls this function with the app and the options, in this order.
  "@sluice/fastify": { rateLimit: 1, default: 1 },
}

/** A timeout that is long enough for Redis on a busy machine. The results of blocks do not depend on milliseconds. */
const storeTimeoutMs = 20_000

/**
 * Returns the exports of a module. The module's limiters and stores use a clock that does not advance, unless the
 * block passes another clock. Otherwise, the results of a block would depend on the time at which it runs. Limiters
 * are closed when the test ends. Other modules are unchanged.
 */
export function onStandingClock(module: string, exports: Exports, clock: Clock = manualClock()): Exports {
  if (module === "@sluice/express-rate-limit-store") return { ...exports, SluiceStore: patientStore(exports) }
  if (module === "ioredis") return { ...exports, Redis: shortLivedRedis(exports) }
  const changed = Object.entries(MAKERS[module] ?? {}).map(([name, at]) => {
    const make = exports[name] as (...args: unknown[]) => unknown
    const apply = (_: unknown, self: unknown, args: unknown[]): unknown => {
      const given = (args[at] ?? {}) as Options
      const isLimiter = name !== "memoryStore" && name !== "redisStore"
      const ours = { clock, ...(isLimiter && { storeTimeoutMs }) }
      // A shared limiter already has a clock.
      const options = "limiter" in given ? given : { ...ours, ...given }
      const withOptions = [...args.slice(0, at), options, ...args.slice(at + 1)]
      const made = Reflect.apply(make, self, withOptions) as Closable & { limiter?: Closable }
      const limiter = name === "createLimiter" ? made : made?.limiter
      if (limiter !== undefined && !("limiter" in given)) onTestFinished(() => limiter.close())
      return made
    }
    return [name, new Proxy(make, { apply })]
  })
  return { ...exports, ...Object.fromEntries(changed) }
}

/**
 * Returns ioredis' class of clients, which disconnects each client when the test ends. A block may create a client
 * inside other options, and such a client would otherwise reconnect forever.
 */
function shortLivedRedis({ Redis: Client }: Exports): object {
  return new Proxy(Client as typeof Redis, {
    construct(Client, given) {
      const client: Redis = Reflect.construct(Client, given)
      onTestFinished(() => client.disconnect())
      return client
    },
  })
}

/** Returns the store for express-rate-limit, which has no clock. A store is shut down when the test ends. */
function patientStore({ SluiceStore }: Exports): object {
  return new Proxy(SluiceStore as typeof Store, {
    construct(Store, [options]: [SluiceStoreOptions?]) {
      const store = new Store({ storeTimeoutMs, ...options })
      onTestFinished(() => store.shutdown())
      return store
    },
  })
}
