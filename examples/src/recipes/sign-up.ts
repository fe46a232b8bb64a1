import { rateLimit } from "@sluice/fastify"
import Fastify from "fastify"
import { getDomain } from "tldts"
import type { Surroundings } from "../surroundings.ts"

type Form = { email: string }

export async function createApp(
  register: (email: string) => Promise<"created" | "taken">,
  surroundings: Surroundings = {},
) {
  const bigProviders = ["gmail.com", "icloud.com", "outlook.com", "yahoo.com"]
  const app = Fastify()
  await app.register(rateLimit, {
    ...surroundings,
    // Providers often give a customer a /48, which has 65,536 networks of size /64.
    ipv6Prefix: 48,
    // a.spam.example counts as spam.example.
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
    // A taken address is charged, because the response reveals an account.
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
