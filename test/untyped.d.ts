// The older versions have no types here. The parts that the tests use have the same types as the current versions.
declare module "express4" {
  export { default } from "express"
}
declare module "koa2" {
  export { default } from "koa"
}
declare module "cookie-parser" {
  import type { RequestHandler } from "express"
  export default function cookieParser(secret?: string): RequestHandler
}
declare module "dynalite" {
  import type { Server } from "node:http"
  export default function dynalite(options: {
    readonly createTableMs?: number
    readonly deleteTableMs?: number
  }): Server
}
declare module "compression" {
  import type { RequestHandler } from "express"
  export default function compression(options?: { readonly threshold?: number }): RequestHandler
}
