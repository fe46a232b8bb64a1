import { rateLimit } from "@sluice/fastify"
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify"
import { accountOf } from "../authentication.ts"
import type { Surroundings } from "../surroundings.ts"

/**
 * A function that returns whether the code or card number of an account is correct.
 */
type Check = (account: string, sent: string) => boolean
type Sent = { Body: { code?: string; card?: string } }

/**
 * Creates an app with limits on `POST /second-factor` and `POST /cards`: a few
 * tries per hour for each account.
 */
export async function createApp(
  isRight: Check,
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
  const codes = {
    name: "second-factor",
    field: "account",
    limit: 5,
    window: "1 hour",
  }
  app.post<Sent>(
    "/second-factor",
    { config: { rateLimit: codes } },
    (request, reply) =>
      reply
        .code(isRight(accountIdOf(request), request.body.code ?? "") ? 200 : 403)
        .send(),
  )
  const cards = { name: "cards", field: "account", limit: 3, window: "1 hour" }
  app.post<Sent>("/cards", { config: { rateLimit: cards } }, (request, reply) =>
    reply
      .code(isRight(accountIdOf(request), request.body.card ?? "") ? 200 : 402)
      .send(),
  )
  return app
}
