import type { Decision } from "@sluice/core"
import type { GuardOptions } from "@sluice/core/adapters"

/** The framework's own request object: Express `req`, Koa `ctx`, Fastify `request`. */
export type FrameworkRequest = object

export type Options = GuardOptions<FrameworkRequest>

/** The response of a handler. Default: 200 and "ok". */
export interface Reply {
  readonly status?: number
  readonly body?: string
}

export interface RoutePlan {
  /** Default GET. */
  readonly method?: string
  /** A path, or a pattern that all frameworks interpret in the same way, such as "/users/:id". */
  readonly path: string
  /** Mounts of this route only, which run after the mounts of the app. */
  readonly mounts?: readonly Options[]
  /** Returns the options of a mount that is created again for each request. */
  readonly mountPerRequest?: () => Options
  readonly handle?: (request: FrameworkRequest) => Reply | Promise<Reply>
}

/** A framework-independent description of an app. */
export interface AppPlan {
  /** Whether JSON bodies and cookies are parsed before the first mount. Default: neither is parsed. */
  readonly parsesBodies?: boolean
  /** Rewrites each target before the first mount. Default: no rewriting. */
  readonly rewrite?: (target: string) => string
  /** A cookie that the app sets on each response before the first mount. Default: none. */
  readonly setsCookie?: string
  /** A response that is sent to each request before the first mount. The next handler is called anyway. */
  readonly answersFirst?: Reply
  /** A response that begins before the first mount and never ends. The next handler is called anyway. */
  readonly beginsFirst?: Reply
  /** Mounts of the whole app, in this order, before the routes. */
  readonly mounts?: readonly Options[]
  /** Default: GET "/". */
  readonly routes?: readonly RoutePlan[]
}

/** A running server with the app of a plan, on a free port of 127.0.0.1. */
export interface RunningApp {
  /** Base URL, such as "http://127.0.0.1:41234". */
  readonly url: string
  /** Stops the server, and closes open connections. */
  close(): Promise<void>
}

/** A behavior that an adapter lacks, with its name in the suite and the reason. */
export interface Deviation {
  readonly behaviour: string
  readonly reason: string
}

/** The parts of a framework and its adapter that the suite needs. */
export interface AdapterUnderTest {
  /** Builds the app with the framework's adapter, and starts listening. */
  start(plan: AppPlan): Promise<RunningApp>
  /** Returns the decision that the adapter has stored on the request. */
  decisionOf(request: FrameworkRequest): Decision | undefined
  /** Returns a request header, read in the framework's own way. */
  headerOf(request: FrameworkRequest, name: string): string | undefined
  /** Responds from `onRejected` in the framework's own way. `response` is the fourth argument of `onRejected`. */
  reply(response: unknown, status: number, body: string): void | Promise<void>
  /** Responds like `reply`, but in a later turn and without returning a promise. */
  replyLater(response: unknown, status: number, body: string): void
  /** Begins a response immediately with Node's own response, and ends it with this body in a later turn. */
  replyInParts(response: unknown, status: number, body: string): void
  readonly deviations?: readonly Deviation[]
}
