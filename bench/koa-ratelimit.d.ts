declare module "koa-ratelimit" {
  import type { Context, Middleware } from "koa"

  /** The options that index.js and the limiters of both drivers read. The package does not include types. */
  interface Options {
    readonly driver?: "redis" | "memory"
    /** An ioredis client, or a Map for the memory driver. */
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
