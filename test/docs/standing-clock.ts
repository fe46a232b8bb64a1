import { type Clock, manualClock } from "@sluice/core"
import { onTestFinished } from "vitest"

type Exports = Readonly<Record<string, unknown>>
type Options = Readonly<Record<string, unknown>>
interface Closable {
  close(): Promise<void>
}

/** What takes a clock, by module, and which of its arguments its options are. */
const MAKERS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  "@sluice/core": { createLimiter: 0, memoryStore: 0 },
  "@sluice/core/redis": { redisStore: 0 },
  "@sluice/express": { rateLimit: 0 },
  "@sluice/koa": { rateLimit: 0 },
  // Fastify calls it with the app, and then the options.
  "@sluice/fastify": { rateLimit: 1 },
}

/** Redis on a machine that has other things to do: what a block shows is no matter of milliseconds. */
const storeTimeoutMs = 20_000

/**
 * What a module exports, its limiters and stores on a clock that stands still unless they are given one: what a block
 * promises must not depend on when it is run. Limiters are closed when the test ends. Other modules are as they are.
 */
export function onStandingClock(module: string, exports: Exports, clock: Clock = manualClock()): Exports {
  const changed = Object.entries(MAKERS[module] ?? {}).map(([name, at]) => {
    const make = exports[name] as (...args: unknown[]) => unknown
    const apply = (_: unknown, self: unknown, args: unknown[]): unknown => {
      const given = (args[at] ?? {}) as Options
      const isLimiter = name !== "memoryStore" && name !== "redisStore"
      const ours = { clock, ...(isLimiter && { storeTimeoutMs }) }
      // One that is shared has its clock already.
      const options = "limiter" in given ? given : { ...ours, ...given }
      const made = Reflect.apply(make, self, args.with(at, options)) as Closable & { limiter?: Closable }
      const limiter = name === "createLimiter" ? made : made?.limiter
      if (limiter !== undefined && !("limiter" in given)) onTestFinished(() => limiter.close())
      return made
    }
    return [name, new Proxy(make, { apply })]
  })
  return { ...exports, ...Object.fromEntries(changed) }
}
