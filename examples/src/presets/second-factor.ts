import { rateLimit } from "@sluice/fastify"
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify"
import type { Surroundings } from "../surroundings.ts"
import { accountOf } from "./authentication.ts"

/** A function that returns whether the code or card number of an account is correct. */
type Check = (account: string, sent: string) => boolean
type Sent = { Body: { code?: string; card?: string } }

const accountIdOf = ({ headers }: FastifyRequest): string => accountOf(headers.authorization)?.id ?? ""

/** Creates an app with limits on `POST /second-factor` and `POST /cards`: a few tries per hour for each account. */
export async function createApp(isRight: Check, surroundings: Surroundings = {}): Promise<FastifyInstance> {
  const app = Fastify()
  app.addHook("onRequest", async (request, reply) => {
    if (accountIdOf(request) === "") return reply.code(401).send({ error: "sign in first" })
  })
  await app.register(rateLimit, { ...surroundings, fields: { account: accountIdOf } })

  // Count by account, not by address: an attacker with a thousand addresses still has only a few tries. Correct answers
  // count too, because a correct answer is the goal of an attacker with stolen cards.
  const codes = { name: "second-factor", field: "account", limit: 5, window: "1 hour" }
  app.post<Sent>("/second-factor", { config: { rateLimit: codes } }, (request, reply) =>
    reply.code(isRight(accountIdOf(request), request.body.code ?? "") ? 200 : 403).send(),
  )
  const cards = { name: "cards", field: "account", limit: 3, window: "1 hour" }
  app.post<Sent>("/cards", { config: { rateLimit: cards } }, (request, reply) =>
    reply.code(isRight(accountIdOf(request), request.body.card ?? "") ? 200 : 402).send(),
  )
  return app
}

if (process.argv[1] === import.meta.filename) {
  const app = await createApp(() => false)
  console.log(`Listens on ${await app.listen({ port: Number(process.env.PORT || 3000) })}`)
}
