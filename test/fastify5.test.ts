import cookie from "@fastify/cookie"
import { rateLimit } from "@sluice/fastify"
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify"
import type { AppPlan, RoutePlan } from "./contracts/adapter/plan.ts"
import { begin, sendInParts } from "./contracts/adapter/send-in-parts.ts"
import { adapterContract } from "./contracts/adapter-contract.ts"

adapterContract("@sluice/fastify on Fastify 5", {
  async start(plan) {
    const app = appOf(plan)
    const url = await app.listen({ port: 0, host: "127.0.0.1" })
    return { url, close: () => app.close() }
  },
  decisionOf: (request) => (request as FastifyRequest).rateLimit,
  headerOf: (request, name) => (request as FastifyRequest).headers[name] as string | undefined,
  async reply(response, status, body) {
    await (response as FastifyReply).code(status).send(body)
  },
  replyLater(response, status, body) {
    setImmediate(() => (response as FastifyReply).code(status).send(body))
  },
  replyInParts: (response, status, body) => sendInParts((response as FastifyReply).raw, status, body),
  deviations: [
    {
      behaviour: "created while a request is handled causes one warning",
      reason: "Fastify refuses plugins once it serves",
    },
    {
      behaviour: "is assumed for a body that no parser has read, with one warning",
      reason: "Fastify parses bodies before the hook of a rule that reads them",
    },
  ],
})

function appOf({
  parsesBodies,
  answersFirst,
  beginsFirst,
  rewrite,
  setsCookie,
  mounts = [],
  routes = [{ path: "/" }],
}: AppPlan): FastifyInstance {
  const app = fastify({
    forceCloseConnections: true,
    rewriteUrl: ({ url = "" }) => rewrite?.(url) ?? url,
  })
  if (parsesBodies) app.register(cookie)
  if (setsCookie !== undefined) {
    app.addHook("onRequest", async (_request, reply) => void reply.header("Set-Cookie", setsCookie))
  }
  if (answersFirst !== undefined) {
    app.addHook("onRequest", (_request, reply, done) => {
      reply.code(answersFirst.status ?? 200).send(answersFirst.body)
      done()
    })
  }
  if (beginsFirst !== undefined) {
    app.addHook("onRequest", (_request, reply, done) => {
      begin(reply.raw, beginsFirst)
      done()
    })
  }
  for (const options of mounts) app.register(rateLimit, options)
  for (const route of routes) {
    // A scope with one route.
    app.register(async (scope) => {
      for (const options of route.mounts ?? []) scope.register(rateLimit, options)
      addRoute(scope, route)
    })
  }
  return app
}

function addRoute(scope: FastifyInstance, { method = "GET", path, handle = () => ({}) }: RoutePlan): void {
  scope.route({
    method,
    url: path,
    handler: async (request, reply) => {
      const { status = 200, body = "ok" } = await handle(request)
      return reply.code(status).send(body)
    },
  })
}
