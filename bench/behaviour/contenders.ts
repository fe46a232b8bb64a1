import type { StartApp } from "./app.ts"

export interface Contender {
  readonly name: string
  readonly isOurs: boolean
  /** Loads only the app of this contender. */
  load(): Promise<StartApp>
}

/**
 * Each peer runs on the framework that it is made for. Sluice runs on all frameworks. Sluice also runs with its
 * strict algorithm, and as the store of express-rate-limit.
 */
export const CONTENDERS: readonly Contender[] = [
  {
    name: "express-rate-limit",
    isOurs: false,
    load: async () => (await import("./apps/express-rate-limit.ts")).start,
  },
  {
    name: "rate-limiter-flexible",
    isOurs: false,
    load: async () => (await import("./apps/rate-limiter-flexible.ts")).start,
  },
  {
    name: "@fastify/rate-limit",
    isOurs: false,
    load: async () => (await import("./apps/fastify-rate-limit.ts")).start,
  },
  {
    name: "koa-ratelimit",
    isOurs: false,
    load: async () => (await import("./apps/koa-ratelimit.ts")).start,
  },
  {
    name: "express-rate-limit, sluice's store",
    isOurs: true,
    load: async () => (await import("./apps/express-rate-limit.ts")).startOnSluice,
  },
  {
    name: "sluice, express",
    isOurs: true,
    load: async () => (await import("./apps/sluice-express.ts")).start,
  },
  {
    name: "sluice, express, strict",
    isOurs: true,
    load: async () => (await import("./apps/sluice-express.ts")).startStrict,
  },
  {
    name: "sluice, fastify",
    isOurs: true,
    load: async () => (await import("./apps/sluice-fastify.ts")).start,
  },
  {
    name: "sluice, koa",
    isOurs: true,
    load: async () => (await import("./apps/sluice-koa.ts")).start,
  },
]

/** @throws Error if no contender has that name */
export function contenderOf(name: string): Contender {
  const found = CONTENDERS.find((one) => one.name === name)
  if (found === undefined) throw new Error(`There is no contender ${name}`)
  return found
}
