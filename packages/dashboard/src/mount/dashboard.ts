import type { IncomingMessage, ServerResponse } from "node:http"
import type { Clock, Limiter } from "@sluice/core"
import {
  type Awaitable,
  clockOption,
  createWarner,
  loggerOption,
  mustBe,
  type OptionCheck,
  problemAt,
  requireOptions,
} from "@sluice/core/kit"
import { type Activity, boardOption, recordActivity } from "../activity.ts"
import type { ActivityBoard } from "../shared/activity-board.ts"
import { accessBy } from "./access.ts"
import { type AuditOption, auditBy, type DashboardChange, type DashboardLogger } from "./audit.ts"
import { Board } from "./board.ts"
import { Changes } from "./changes.ts"
import { Clients, type LimitersOf } from "./clients.ts"
import { Operators } from "./operators.ts"
import { PACE, pageLimiter } from "./pace.ts"
import { type FastifyScope, type KoaContext, Servers } from "./servers.ts"
import { hashedKeys, plainKeys } from "./shown-keys.ts"
import { Site } from "./site.ts"
import { Viewers } from "./viewers.ts"

/** The limiters of a program that creates and closes them while it runs, for `dashboard`. */
export interface DashboardSource {
  /** What the limiters have decided. The page shows the overview of all processes. */
  readonly activity: Pick<Activity, "overview" | "overviewOfAll">
  /**
   * Returns the limiter of a service, or undefined if this process has none. The page reads and changes clients with
   * this limiter. A rejection is shown as text.
   */
  limiterOf(service: string): Awaitable<Limiter<never> | undefined>
}

/** Options of `dashboard`. */
export interface DashboardOptions<Request = IncomingMessage> {
  /**
   * Whether a visitor may see the page. Receives the framework's own request: `req`, Koa's `ctx`, Fastify's `request`,
   * or the `Request` of a fetch server, and whether a browser on this machine sent it, without a proxy in between. Called
   * for every request, and an open page sends one every minute. If it fails, the request is refused with 403. A visitor
   * for whom it returns "operator" may also reset, block and unblock clients. Default: `(request, isLocal) => isLocal`.
   */
  readonly authorize?:
    | ((request: Request, isLocal: boolean) => boolean | "operator" | Promise<boolean | "operator">)
    | undefined
  /**
   * The token with which a visitor of the page may reset, block and unblock clients, at least 16 characters of ASCII. The page asks
   * for the token, remembers it until the page is closed, and sends it with each change. Or a function that decides whether a
   * token is valid for the clients of a service. A token does not open the page. After ten wrong tokens in a minute, this
   * process refuses all tokens. Default: only visitors for whom `authorize` returns "operator" change clients.
   */
  readonly token?: string | ((token: string, service: string) => boolean | Promise<boolean>) | undefined
  /**
   * Called for each change of a client, and for each attempt that failed, with the framework's own request. The client's
   * key is personal data. Default: a line to `logger.info`, or to the console if the logger has no `info`.
   */
  readonly audit?: ((change: DashboardChange, request: Request) => void) | undefined
  /**
   * How the page shows keys of clients, such as addresses. "hashed" shows "hash:3f9a12c0". A search for an address or
   * user finds its hash. Default: "hashed".
   */
  readonly keys?: "hashed" | "shown" | undefined
  /**
   * The secret of the hashes, at least 16 characters. Set the same in all processes behind a load balancer, because the
   * requests of one page may reach several of them. Default: a random secret of this process.
   */
  readonly hashSecret?: string | undefined
  /**
   * The path of the page, such as "/limits", if the server leaves it in the URL: Koa without koa-mount, fetch servers
   * and `node:http`. Express and Fastify do not need it. Default: the place where the framework mounts the dashboard.
   */
  readonly path?: string | undefined
  /**
   * The board on which processes exchange their records: `redisActivity({ client })` of `@sluice/redis`. The page then
   * shows the decisions of all processes that use the same board. Default: only of this process.
   */
  readonly shared?: ActivityBoard | undefined
  /** The destination of warnings and changes, such as pino. Default: `process.emitWarning`, and the console for changes. */
  readonly logger?: DashboardLogger | undefined
  /** The source of time, for tests; its `now` returns epoch milliseconds. Default: the time of this machine. */
  readonly clock?: Clock | undefined
}

/** The page as a handler of Node and Express, and for other servers. */
export interface Dashboard {
  /** Answers a request of `node:http`, Connect or Express. Calls `next` for a request outside of the option `path`. */
  (request: IncomingMessage, response: ServerResponse, next?: (error?: unknown) => void): void
  /** Middleware for Koa. */
  readonly koa: (ctx: KoaContext, next: () => Promise<unknown>) => Promise<void>
  /** A plugin for Fastify, to be registered with a `prefix`. A limiter never counts its routes. */
  readonly fastify: (app: FastifyScope, options: unknown, done: () => void) => void
  /** A handler for fetch servers. Needs `authorize`, because a `Request` does not contain the client's address. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Ends all open pages, for which a closing server would wait, and stops recording. A source keeps its activity. */
  readonly close: () => void
}

const SYSTEM_CLOCK: Clock = { now: Date.now }
const isPath = (value: unknown): boolean => typeof value === "string" && /^\/[^?#]*[^/?#]$/.test(value)
const isFunction = (value: unknown): boolean => typeof value === "function"
/** Accepts a secret. The message does not contain the value, because somebody may read the log. */
const secretOption =
  (what: string, also = "", pattern = /.{16}/s): OptionCheck =>
  (value) =>
    (typeof value === "string" && pattern.test(value)) || (also !== "" && isFunction(value))
      ? undefined
      : { message: `is not a ${what}`, accepted: `a random string of at least 16 characters${also}` }
/** What a browser sends in a header: ASCII without white space at the ends, such as the line break of a file. */
const TOKEN = /^[!-~][ -~]{14,}[!-~]$/
const CHECKS: Readonly<Record<string, OptionCheck>> = {
  authorize: mustBe("a function", '(request) => true, false or "operator"', isFunction),
  token: secretOption(
    "token",
    " of ASCII, without white space at its ends, or a function (token, service) => boolean",
    TOKEN,
  ),
  audit: mustBe("a function", "(change, request) => void", isFunction),
  keys: mustBe("a way to show keys", '"hashed" or "shown"', (value) =>
    ["hashed", "shown"].includes(value as string),
  ),
  hashSecret: secretOption("secret"),
  path: mustBe("a path", 'a string such as "/limits", without a slash at its end', isPath),
  shared: boardOption,
  logger: loggerOption,
  clock: clockOption,
}

const isSource = (value: unknown): value is DashboardSource => Object(value).activity !== undefined
const checkSource = mustBe("a source", "{ activity, limiterOf(service) }", (value) => {
  const { activity, limiterOf } = value as DashboardSource
  return [activity.overview, activity.overviewOfAll, limiterOf].every((each) => typeof each === "function")
})
const checkNoBoard = (): ReturnType<OptionCheck> => ({
  message: "has no effect on a source, because the source has its own activity",
  accepted: "the option shared of recordActivity()",
})

/**
 * Creates a page that shows which clients the limiters refuse, by which rule, and since when. Begins to record their
 * decisions, or reads the activity of a {@link DashboardSource}. The page is closed to other machines until `authorize` is
 * set, and changes nothing until there are operators: by `token`, or by `authorize`.
 *
 * Mount the page before the middleware that limits requests. Otherwise the page's own requests count, and a client that is
 * refused cannot open it. At most 50 pages can be open at a time.
 * @example
 * ```ts
 * import { dashboard } from "@sluice/dashboard"
 * import { rateLimit } from "@sluice/express"
 * import express from "express"
 *
 * const app = express()
 * const limit = rateLimit({ name: "per-client", limit: 100, window: "1 minute" })
 * app.use("/limits", dashboard(limit.limiter))
 * app.use(limit)
 * ```
 * @throws {@link InvalidOptionError}
 */
export function dashboard<Request = IncomingMessage>(
  limiters: Limiter<never> | readonly Limiter<never>[] | DashboardSource,
  options: DashboardOptions<Request> = {},
): Dashboard {
  const checks = isSource(limiters) ? { ...CHECKS, shared: checkNoBoard } : CHECKS
  const problems = isSource(limiters) ? problemAt("limiters", limiters, checkSource) : []
  requireOptions("dashboard()", options, checks, problems)
  const { authorize, keys = "hashed", hashSecret, path, shared, logger, clock = SYSTEM_CLOCK } = options
  const recorded = isSource(limiters) ? undefined : recordActivity(limiters, { shared, clock: options.clock })
  const activity = recorded ?? (limiters as DashboardSource).activity
  const forms = keys === "hashed" ? hashedKeys(hashSecret) : plainKeys
  const board = new Board(activity, recorded === undefined || shared !== undefined, forms.show, clock)
  const viewers = new Viewers(clock, () => board.event())
  const warner = createWarner(logger, () => undefined)
  const clients = new Clients(board, limitersIn(limiters), forms)
  const operators = new Operators(options.token, clock, warner)
  const changes = new Changes(clients, operators, auditBy(options.audit as AuditOption, logger, warner))
  const roleOf = accessBy(authorize, warner)
  const pace = pageLimiter(PACE, clock)
  const site = new Site({ roleOf, board, viewers, clients, operators, changes, pace, clock })
  const servers = new Servers(site, path)
  return Object.assign(servers.node.bind(servers), {
    koa: servers.koa.bind(servers),
    fetch: servers.fetch.bind(servers),
    fastify(app: FastifyScope, _options: unknown, done: () => void): void {
      app.addHook("preClose", (closed) => {
        viewers.close()
        closed()
      })
      servers.fastify(app)
      done()
    },
    close(): void {
      viewers.close()
      recorded?.stop()
    },
  })
}

/** Returns a function that returns the limiters of a service. */
function limitersIn(limiters: Limiter<never> | readonly Limiter<never>[] | DashboardSource): LimitersOf {
  if (isSource(limiters)) return async (service) => [(await limiters.limiterOf(service)) ?? []].flat()
  return async (service) => [limiters].flat().filter(({ status }) => status.service === service)
}
