import { subscribe } from "node:diagnostics_channel"
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
  RouteOptions,
} from "fastify"
import { routeLabel } from "./route-name.ts"

/** The hooks in which a request can be decided, in the order in which they run. */
export const HOOKS = ["onRequest", "preParsing", "preValidation", "preHandler"] as const
export type HookName = (typeof HOOKS)[number]

/** Goes on with the request by `done`, or answers it. */
export type Decide = (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => void

/** A route that says something about its own rate limit. */
export interface OwnRoute {
  readonly label: string
  readonly scope: FastifyInstance
  /** Its `config.rateLimit`, as it was written. */
  readonly written: unknown
  /** What its own hook does, where its plugin decides it there and not in the plugin's hook. */
  decide: Decide | undefined
}

/** One registration of the plugin. */
export interface Mount {
  readonly scope: FastifyInstance
}

/** What is known of an app: its routes with a `config.rateLimit`, and where the plugin is registered. */
export interface AppRecord {
  readonly routes: OwnRoute[]
  readonly mounts: Mount[]
  /** False where routes may have been added unseen. */
  readonly fromTheStart: boolean
}

const RECORD = Symbol("sluice.app")
const ROUTE = Symbol("sluice.route")

// A plugin's function runs after the routes that are added in the same turn as `app.register`, and Fastify tells
// `onRoute` hooks only of later ones. So every app is watched from the moment in which Fastify announces it.
subscribe("fastify.initialization", (message) => {
  record((message as { fastify: FastifyInstance }).fastify, true)
})

/** The record of an app, begun now if the app is older than this module. */
export function appRecord(app: FastifyInstance): AppRecord {
  return app.hasDecorator(RECORD) ? app.getDecorator<AppRecord>(RECORD) : record(app, false)
}

/** The request's route, if it says something about its own rate limit and was seen when it was added. */
export function ownRoute(request: FastifyRequest): OwnRoute | undefined {
  return (request.routeOptions.config as { [ROUTE]?: OwnRoute })[ROUTE]
}

/** Of the registrations that a route is under, the one in the innermost scope; of several there, the first. */
export function nearestMount({ mounts }: AppRecord, route: OwnRoute): Mount | undefined {
  let nearest: Mount | undefined
  for (const mount of mounts) {
    if (!isWithin(route.scope, mount.scope)) continue
    if (nearest === undefined || !isWithin(nearest.scope, mount.scope)) nearest = mount
  }
  return nearest
}

/** Whether a scope is another one or inside it: Fastify makes the outer one its prototype. */
function isWithin(inner: FastifyInstance, outer: FastifyInstance): boolean {
  return inner === outer || Object.prototype.isPrototypeOf.call(outer, inner)
}

function record(app: FastifyInstance, fromTheStart: boolean): AppRecord {
  const made: AppRecord = { routes: [], mounts: [], fromTheStart }
  app.decorate(RECORD, made)
  app.addHook("onRoute", function (options) {
    const written = options.config?.rateLimit
    if (written === undefined) return
    const route: OwnRoute = { label: routeLabel(options), scope: this, written, decide: undefined }
    made.routes.push(route)
    options.config = Object.assign({}, options.config, { [ROUTE]: route })
    if (typeof written !== "object") return
    const hook = written?.hook ?? "preHandler"
    if (HOOKS.includes(hook)) addHook(options, hook, route)
  })
  return made
}

/** Puts a hook before the route's other ones of that kind. */
function addHook(options: RouteOptions, name: HookName, route: OwnRoute): void {
  const hook = (request: FastifyRequest, reply: FastifyReply, ...rest: unknown[]): void => {
    // A preParsing hook is given the payload before `done`.
    const done = rest.at(-1) as HookHandlerDoneFunction
    if (route.decide === undefined) done()
    else route.decide(request, reply, done)
  }
  Object.assign(options, { [name]: [hook, ...[options[name] ?? []].flat()] })
}
