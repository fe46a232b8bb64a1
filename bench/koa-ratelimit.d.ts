declare module "koa-ratelimit" {
  import type { Middleware } from "koa"

  export default function ratelimit(options: {
    driver: "memory"
    db: Map<string, unknown>
    duration: number
    max: number
    id: (ctx: { ip: string }) => string
  }): Middleware
}
