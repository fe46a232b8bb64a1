import { rateLimit } from "@sluice/fastify"
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify"
import { accountOf } from "../authentication.ts"
import type { Surroundings } from "../surroundings.ts"

export async function createApp(
  isRight: (account: string, code: string) => boolean,
  surroundings: Surroundings = {},
): Promise<FastifyInstance> {
  const accountIdOf = ({ headers }: FastifyRequest): string =>
    accountOf(headers.authorization)?.id ?? ""
  const app = Fastify()
  app.addHook("onRequest", async (request, reply) => {
    if (accountIdOf(request) === "") return reply.code(401).send()
  })
  await app.register(rateLimit, {
    ...surroundings,
    fields: { account: accountIdOf },
  })
  const codes = { name: "codes", field: "account", limit: 5, window: "1 hour" }
  app.post<{ Body: { code?: string } }>(
    "/second-factor",
    { config: { rateLimit: codes } },
    (request, reply) =>
      reply
        .code(isRight(accountIdOf(request), request.body.code ?? "") ? 200 : 403)
        .send(),
  )
  return app
}
