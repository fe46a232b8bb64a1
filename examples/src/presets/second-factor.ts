import { rateLimit } from "@sluice/fastify"
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify"
import { accountOf } from "./authentication.ts"
import type { Surroundings } from "./surroundings.ts"

/** What is right and what is not. */
export interface Checks {
  readonly isCode: (account: string, code: string) => boolean
  readonly isCard: (number: string) => boolean
}

interface Body {
  readonly code?: string
  readonly card?: string
}

const accountIdOf = ({ headers }: FastifyRequest): string | undefined => accountOf(headers.authorization)?.id

/** `POST /second-factor` and `POST /cards`: a few tries an hour for an account. */
export async function createApp(checks: Checks, surroundings: Surroundings = {}): Promise<FastifyInstance> {
  const app = Fastify()
  app.addHook("onRequest", async (request, reply) => {
    if (accountIdOf(request) === undefined) return reply.code(401).send({ error: "sign in first" })
  })

  // By account and not by address: who has a thousand addresses still has a few tries. A right answer counts as well,
  // since right is just what somebody who tries stolen cards is looking for.
  const account = { field: "account", window: "1 hour" }
  await app.register(rateLimit, {
    ...surroundings,
    fields: { account: accountIdOf },
    rules: [
      { ...account, name: "second-factor", limit: 5, match: { methods: ["POST"], path: "/second-factor" } },
      { ...account, name: "cards", limit: 3, match: { methods: ["POST"], path: "/cards" } },
    ],
  })

  app.post<{ Body: Body }>("/second-factor", (request, reply) => {
    const isRight = checks.isCode(accountIdOf(request) ?? "", request.body.code ?? "")
    return reply.code(isRight ? 200 : 403).send({ right: isRight })
  })
  app.post<{ Body: Body }>("/cards", (request, reply) => {
    const isRight = checks.isCard(request.body.card ?? "")
    return reply.code(isRight ? 200 : 402).send({ right: isRight })
  })
  return app
}

if (process.argv[1] === import.meta.filename) {
  const app = await createApp({ isCode: () => false, isCard: () => false })
  console.log(`Listens on ${await app.listen({ port: Number(process.env.PORT ?? 3000) })}`)
}
