import type { RequestFacts } from "@sluice/core"
import type { Context } from "koa"

/** The facts of a Koa context, each read when a rule asks for it. */
export class KoaFacts implements RequestFacts {
  readonly #ctx: Context
  constructor(ctx: Context) {
    this.#ctx = ctx
  }
  get method(): string {
    return this.#ctx.method
  }
  get url(): string {
    return this.#ctx.originalUrl
  }
  get route(): string | undefined {
    const route: unknown = this.#ctx._matchedRoute
    return typeof route === "string" ? route : undefined
  }
  get headers(): Context["headers"] {
    return this.#ctx.headers
  }
  get query(): unknown {
    return this.#ctx.query
  }
  get params(): unknown {
    return this.#ctx.params
  }
  get body(): unknown {
    return (this.#ctx.request as { body?: unknown }).body
  }
  get remoteAddress(): string | undefined {
    return this.#ctx.req.socket?.remoteAddress
  }
  get keepsAddress(): object | undefined {
    return this.#ctx.req.socket
  }
}

/** The facts of what a limiter is asked about by hand, when it is a context of Koa. */
export function factsOf(request: object): RequestFacts | undefined {
  return "req" in request && "originalUrl" in request ? new KoaFacts(request as Context) : undefined
}
