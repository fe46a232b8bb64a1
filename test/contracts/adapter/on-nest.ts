import "reflect-metadata"
import cookie from "@fastify/cookie"
import {
  type ArgumentsHost,
  type CanActivate,
  Controller,
  type ExecutionContext,
  HttpException,
  type INestApplication,
  Module,
  type NestApplicationOptions,
  Req,
  RequestMapping,
  RequestMethod,
  Res,
  type Type,
  UseGuards,
  UseInterceptors,
} from "@nestjs/common"
import { APP_FILTER, BaseExceptionFilter, NestFactory } from "@nestjs/core"
import { ExpressAdapter, type NestExpressApplication } from "@nestjs/platform-express"
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify"
import { decisionOn } from "@sluice/core"
import { RateLimitGuard, RateLimitModule, type RateLimitModuleOptions } from "@sluice/nestjs"
import cookieParser from "cookie-parser"
import type { NextFunction, Request, Response } from "express"
import type { FastifyReply } from "fastify"
import { ModuleLimits } from "../../../packages/nestjs/src/limits.ts"
import type { AdapterUnderTest, AppPlan, Deviation, Options, RoutePlan, RunningApp } from "./plan.ts"
import { begin, sendInParts } from "./send-in-parts.ts"

const NO_ROUTE = "Nest runs no guard for a request without a route"
const DEVIATIONS: readonly Deviation[] = [
  { behaviour: "gets quota headers with a 404", reason: NO_ROUTE },
  { behaviour: "requests without a route", reason: NO_ROUTE },
  { behaviour: "gets what the app's function returns for the framework's request", reason: NO_ROUTE },
  { behaviour: "OPTIONS requests that are not preflight requests", reason: NO_ROUTE },
  { behaviour: "a preflight request with a body, because a handler could read the body", reason: NO_ROUTE },
]
const PARSES: Deviation = {
  behaviour: "is assumed for a body that no parser has read, with one warning",
  reason: "Fastify parses bodies before Nest's guards run",
}

/** The filter of an app that responds to errors with their own status and headers, as other frameworks do. */
class StatusFilter extends BaseExceptionFilter {
  override catch(error: Partial<Error & { status: number; headers: object }>, host: ArgumentsHost): void {
    const { status, headers = {}, message = "" } = Object(error)
    if (error instanceof HttpException || status === undefined) {
      super.catch(error, host)
      return
    }
    const response = host.switchToHttp().getResponse()
    for (const [name, value] of Object.entries(headers)) response.header(name, value)
    super.catch(new HttpException(message, status), host)
  }
}

/** NestJS on Express. */
export const onNestExpress: AdapterUnderTest = {
  async start(plan) {
    const app = await NestFactory.create<NestExpressApplication>(
      moduleOf(plan),
      new ExpressAdapter(),
      settingsOf(plan),
    )
    prepareExpress(app, plan)
    return listen(app)
  },
  decisionOf: decisionOn,
  headerOf,
  reply(response, status, body) {
    ;(response as Response).status(status).send(body)
  },
  replyLater(response, status, body) {
    setImmediate(() => (response as Response).status(status).send(body))
  },
  replyInParts: (response, status, body) => sendInParts(response as Response, status, body),
  deviations: DEVIATIONS,
}

/** NestJS on Fastify. */
export const onNestFastify: AdapterUnderTest = {
  async start(plan) {
    const { rewrite } = plan
    const adapter = new FastifyAdapter({ rewriteUrl: ({ url = "" }) => rewrite?.(url) ?? url })
    const app = await NestFactory.create<NestFastifyApplication>(moduleOf(plan), adapter, settingsOf(plan))
    await prepareFastify(app, plan)
    return listen(app)
  },
  decisionOf: decisionOn,
  headerOf,
  async reply(response, status, body) {
    await (response as FastifyReply).code(status).send(body)
  },
  replyLater(response, status, body) {
    setImmediate(() => (response as FastifyReply).code(status).send(body))
  },
  replyInParts: (response, status, body) => sendInParts((response as FastifyReply).raw, status, body),
  deviations: [...DEVIATIONS, PARSES],
}

function headerOf(request: object, name: string): string | undefined {
  return (request as Request).headers[name] as string | undefined
}

function settingsOf({ parsesBodies = false }: AppPlan): NestApplicationOptions {
  return { logger: false, abortOnError: false, forceCloseConnections: true, bodyParser: parsesBodies }
}

async function listen(app: INestApplication): Promise<RunningApp> {
  await app.listen(0, "127.0.0.1")
  return { url: await app.getUrl(), close: () => app.close() }
}

function prepareExpress(
  app: NestExpressApplication,
  { parsesBodies, rewrite, setsCookie, answersFirst, beginsFirst }: AppPlan,
): void {
  if (parsesBodies) app.use(cookieParser())
  app.use((req: Request, res: Response, next: NextFunction) => {
    if (setsCookie !== undefined) res.append("Set-Cookie", setsCookie)
    if (rewrite !== undefined) req.url = rewrite(req.url)
    if (answersFirst !== undefined) res.status(answersFirst.status ?? 200).send(answersFirst.body)
    if (beginsFirst !== undefined) begin(res, beginsFirst)
    next()
  })
}

async function prepareFastify(
  app: NestFastifyApplication,
  { parsesBodies, setsCookie, answersFirst, beginsFirst }: AppPlan,
): Promise<void> {
  if (parsesBodies) await app.register(cookie as never)
  const instance = app.getHttpAdapter().getInstance()
  instance.addHook("onRequest", (_request, reply, done) => {
    if (setsCookie !== undefined) reply.header("Set-Cookie", setsCookie)
    if (answersFirst !== undefined) reply.code(answersFirst.status ?? 200).send(answersFirst.body)
    if (beginsFirst !== undefined) begin(reply.raw, beginsFirst)
    done()
  })
}

function moduleOf({ mounts = [], routes = [{ path: "/" }] }: AppPlan): Type {
  class AppModule {}
  const imports = mounts.map((options) => RateLimitModule.forRoot(options as RateLimitModuleOptions))
  const providers = [{ provide: APP_FILTER, useClass: StatusFilter }]
  Module({ imports, providers, controllers: routes.map(controllerOf) })(AppModule)
  return AppModule
}

function controllerOf({
  method = "GET",
  path,
  mounts = [],
  mountPerRequest,
  handle = () => ({}),
}: RoutePlan): Type {
  class RouteController {
    async handle(request: object, response: Response): Promise<string> {
      const { status = 200, body = "ok" } = await handle(request)
      response.status(status)
      return body
    }
  }
  const { prototype } = RouteController
  const descriptor = Object.getOwnPropertyDescriptor(prototype, "handle") as PropertyDescriptor
  const verb = RequestMethod[method as "GET"]
  RequestMapping({ path, method: verb })(prototype, "handle", descriptor)
  Req()(prototype, "handle", 0)
  Res({ passthrough: true })(prototype, "handle", 1)
  const guards: (RateLimitGuard | CanActivate)[] = mounts.map(guardOf)
  const perRequest: CanActivate = {
    canActivate: (context: ExecutionContext) =>
      mountPerRequest === undefined || guardOf(mountPerRequest()).canActivate(context),
  }
  UseGuards(...guards, perRequest)(prototype, "handle", descriptor)
  UseInterceptors(...(guards as RateLimitGuard[]))(prototype, "handle", descriptor)
  Controller()(RouteController)
  return RouteController
}

/** Creates a guard with its own options, as `RateLimitModule` does. */
function guardOf(options: Options): RateLimitGuard {
  return new RateLimitGuard(new ModuleLimits(options, undefined))
}
