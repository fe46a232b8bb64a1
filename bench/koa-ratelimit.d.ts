declare module "koa-ratelimit" {
  import type { Context, Middleware } from "koa"

  /** All that index.js and the limiters of both drivers read; the package has no types of its own. */
  interface Options {
    readonly driver?: "redis" | "memory"
    /** A client of ioredis, or for the memory driver a Map. */
    readonly db?: object
    readonly duration?: number
    readonly max?: number
    readonly id?: (ctx: Context) => string | false
    readonly namespace?: string
    readonly headers?: { readonly remaining?: string; readonly reset?: string; readonly total?: string }
    readonly disableHeader?: boolean
    readonly errorMessage?: unknown
    readonly status?: number
    readonly whitelist?: (ctx: Context) => boolean | Promise<boolean>
    readonly blacklist?: (ctx: Context) => boolean | Promise<boolean>
    readonly onLimited?: (ctx: Context) => void
    readonly throw?: boolean
  }
  export default function ratelimit(options?: Options): Middleware
}
