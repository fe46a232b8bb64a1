import type { Decision, GuardOptions } from "@sluice/core"

/** The framework's own request object: Express `req`, Koa `ctx`, Fastify `request`. */
export type FrameworkRequest = object

export type Options = GuardOptions<FrameworkRequest>

/** What a handler answers: default 200 and "ok". */
export interface Reply {
  readonly status?: number
  readonly body?: string
}

export interface RoutePlan {
  /** Default GET. */
  readonly method?: string
  /** A path, or a pattern that every framework reads alike: "/users/:id". */
  readonly path: string
  /** Mounted on this route alone, after those of the app. */
  readonly mounts?: readonly Options[]
  /** Yields options of a mount that is made anew inside the handling of each request. */
  readonly mountPerRequest?: () => Options
  readonly handle?: (request: FrameworkRequest) => Reply | Promise<Reply>
}

/** An app in the words of no framework. */
export interface AppPlan {
  /** Whether JSON bodies and cookies are parsed, before the first mount. Default: cookies by nobody, bodies by nobody. */
  readonly parsesBodies?: boolean
  /** The app takes each target for another, before the first mount. Default: none. */
  readonly rewrite?: (target: string) => string
  /** The app sets it for each request, before the first mount. Default: none. */
  readonly setsCookie?: string
  /** Runs before the first mount and answers by itself, going on all the same. */
  readonly answersFirst?: Reply
  /** Begins a response before the first mount, never ends it, and calls the next handler. */
  readonly beginsFirst?: Reply
  /** Mounted on the whole app, in this order, before the routes. */
  readonly mounts?: readonly Options[]
  /** Default: GET "/". */
  readonly routes?: readonly RoutePlan[]
}

/** A server of the plan's app on a free port of 127.0.0.1. */
export interface RunningApp {
  /** "http://127.0.0.1:41234" */
  readonly url: string
  /** Ends it, open connections too. */
  close(): Promise<void>
}

/** A behaviour that an adapter does not have, by its name in the suite, and why. */
export interface Deviation {
  readonly behaviour: string
  readonly reason: string
}

/** What the suite needs of a framework. */
export interface AdapterUnderTest {
  /** Puts the app together with the framework's adapter and listens. */
  start(plan: AppPlan): Promise<RunningApp>
  /** Where the adapter leaves the decision. */
  decisionOf(request: FrameworkRequest): Decision | undefined
  /** A request header, by the framework's own way. */
  headerOf(request: FrameworkRequest, name: string): string | undefined
  /** Answers from `onRejected`, by the framework's own way; `response` is its fourth argument. */
  reply(response: unknown, status: number, body: string): void | Promise<void>
  /** The same, but in a later turn and without a promise of it. */
  replyLater(response: unknown, status: number, body: string): void
  /** Begins an answer at once, by Node's own response, and ends it with this body in a later turn. */
  replyInParts(response: unknown, status: number, body: string): void
  readonly deviations?: readonly Deviation[]
}
