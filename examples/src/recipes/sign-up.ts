import { rateLimit } from "@sluice/fastify"
import Fastify from "fastify"
import { getDomain } from "tldts"
import type { Surroundings } from "../surroundings.ts"

type Form = { email: string }
type Register = (email: string) => Promise<"created" | "taken">

/**
 * Creates an app that limits new accounts by the client's network and by the domain
 * of the e-mail address.
 */
export async function createApp(
  register: Register,
  surroundings: Surroundings = {},
) {
  const bigProviders = ["gmail.com", "icloud.com", "outlook.com", "yahoo.com"]
  const app = Fastify()
  await app.register(rateLimit, {
    ...surroundings,
    // Providers often give a customer a /48. By default, each of its 65,536
    // networks of size /64 counts separately.
    ipv6Prefix: 48,
    // The registrable domain: a spammer who owns spam.example also owns
    // a.spam.example.
    fields: { domain: ({ body }) => getDomain((body as Form).email) ?? undefined },
    rules: [
      { name: "network", field: "ip", limit: 5, window: "1 hour" },
      {
        name: "domain",
        field: "domain",
        limit: 20,
        window: "1 day",
        allow: bigProviders,
        onMissing: "skip",
      },
    ],
    // An invalid form costs nothing. A taken address does, because the answer
    // reveals an account.
    refundWhen: (_request, status) => status === 400 || status >= 500,
  })
  const body = {
    type: "object",
    required: ["email"],
    properties: { email: { type: "string" } },
  }
  app.post<{ Body: Form }>(
    "/accounts",
    { schema: { body } },
    async (request, reply) =>
      reply
        .code((await register(request.body.email)) === "created" ? 201 : 409)
        .send(),
  )
  return app
}
