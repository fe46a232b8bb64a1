import type { IncomingMessage, ServerResponse } from "node:http"
import type { Writable } from "node:stream"
import type { Site } from "./site.ts"
import { type Answer, locate, readJson, type Visit } from "./visit.ts"

/** The members of a Koa context that the dashboard uses. */
export interface KoaContext {
  /** Node's own request. */
  readonly req: IncomingMessage
  /** Node's own response. */
  readonly res: ServerResponse
  /** The whole URL. */
  readonly originalUrl: string
  /** The URL that koa-mount has left. */
  readonly url: string
  /** Koa's request, to which a parser may have added `body`. */
  readonly request: object
  /** Set to false, because the dashboard responds without Koa. */
  respond?: boolean | undefined
}

/** The members of a Fastify instance that the dashboard uses. */
export interface FastifyScope {
  /** The path of the scope. */
  readonly prefix: string
  /** Adds a route for all methods. */
  all(url: string, options: object, handler: (request: never, reply: never) => void): unknown
  /** Adds a hook that runs when the app begins to close. */
  addHook(name: "preClose", hook: (done: () => void) => void): unknown
  /** Adds a parser for bodies. */
  addContentTypeParser(
    type: string,
    options: object,
    parser: (request: never, payload: never, done: (error: null) => void) => void,
  ): unknown
  /** Removes the parsers, which would read the body before the dashboard does. */
  removeAllContentTypeParsers(): void
}

interface FastifyCall {
  readonly raw: IncomingMessage
}

interface FastifyResponse {
  readonly raw: ServerResponse
  hijack(): unknown
}

/** A request of Node, to which a framework may have added the whole URL and the parsed body. */
type NodeCall = IncomingMessage & { readonly originalUrl?: string; readonly body?: unknown }

/** Where a request is within the mount. */
type MountPlace = Pick<Visit, "path" | "mountName">

/** Answers the requests of all kinds of servers. */
export class Servers {
  readonly #site: Site
  readonly #mount: string | undefined

  /** `mount` is the path of the mount if the server does not remove it from URLs. */
  constructor(site: Site, mount: string | undefined) {
    this.#site = site
    this.#mount = mount
  }

  /** Answers a request of Node, Connect or Express. */
  node(call: NodeCall, response: ServerResponse, next?: (error?: unknown) => void): void {
    const { url = "/", originalUrl = url } = call
    const place = locate(originalUrl, url, this.#mount)
    if (place === undefined && next !== undefined) next()
    else this.#answer(place, call, response, call, call.body).catch(next ?? (() => response.destroy()))
  }

  /** Answers a request of Koa. */
  async koa(ctx: KoaContext, next: () => Promise<unknown>): Promise<void> {
    const place = locate(ctx.originalUrl, ctx.url, this.#mount)
    if (place === undefined) {
      await next()
      return
    }
    ctx.respond = false
    await this.#answer(place, ctx.req, ctx.res, ctx, (ctx.request as { body?: unknown }).body)
  }

  /** Adds the routes to a scope of Fastify. */
  fastify(app: FastifyScope): void {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser("*", {}, (_request, _payload, done) => done(null))
    for (const url of ["/", "/*"]) {
      app.all(url, { config: { rateLimit: false } }, (request: FastifyCall, reply: FastifyResponse) => {
        const { raw } = request
        reply.hijack()
        const place = locate(raw.url ?? "/", raw.url ?? "/", app.prefix)
        this.#answer(place, raw, reply.raw, request, undefined).catch(() => reply.raw.destroy())
      })
    }
  }

  /** Answers a request of a fetch server. */
  async fetch(request: Request): Promise<Response> {
    const { pathname, host } = new URL(request.url)
    const visit: Visit = {
      ...(locate(pathname, pathname, this.#mount) ?? OUTSIDE),
      method: request.method,
      headers: { host, ...Object.fromEntries(request.headers) },
      address: undefined,
      httpVersion: "",
      body: () => readJson(request.body ?? new Blob([]).stream()),
      request,
    }
    const answer = await this.#site.answer(visit)
    const { status, headers, viewer } = answer
    const isEmpty = request.method === "HEAD" || status === 304
    const body = viewer === undefined ? (isEmpty ? null : new Uint8Array(answer.body)) : streamTo(viewer)
    return new Response(body, { status, headers })
  }

  async #answer(
    place: MountPlace | undefined,
    call: IncomingMessage,
    response: ServerResponse,
    request: unknown,
    parsed: unknown,
  ): Promise<void> {
    const visit: Visit = {
      ...(place ?? OUTSIDE),
      method: call.method ?? "",
      headers: call.headers,
      address: call.socket.remoteAddress,
      httpVersion: call.httpVersion,
      // A parser of the app may have read the body already.
      body: async () => (call.readableEnded ? parsed : readJson(call)),
      request,
    }
    send(await this.#site.answer(visit), visit.method, response)
  }
}

/** The place of a request outside of the mount, which does not exist. */
const OUTSIDE: MountPlace = { path: "/..", mountName: "" }

/** In HTTP/2, a response does not have all members of a stream, but contains the stream. */
type DashboardResponse = ServerResponse & { readonly stream?: Writable }

function send({ status, headers, body, viewer }: Answer, method: string, response: DashboardResponse): void {
  const { stream = response } = response
  if (response.headersSent || stream.destroyed) viewer?.leave()
  else if (viewer === undefined) {
    response.writeHead(status, status === 304 ? headers : { ...headers, "content-length": body.length })
    response.end(method === "HEAD" ? undefined : body)
  } else {
    response.writeHead(status, headers)
    response.once("close", viewer.leave)
    viewer.open({
      isFull: () => stream.writableNeedDrain,
      send: (event) => void response.write(event),
      // A viewer that does not read would never receive the end.
      end: (event) => void (stream.writableNeedDrain ? stream.destroy() : response.end(event)),
    })
  }
}

function streamTo(viewer: NonNullable<Answer["viewer"]>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      viewer.open({
        isFull: () => (controller.desiredSize ?? 0) <= 0,
        send: (event) => controller.enqueue(event),
        end(event) {
          if (event !== undefined) controller.enqueue(event)
          controller.close()
        },
      })
    },
    cancel: () => viewer.leave(),
  })
}
