import { createLimiter } from "@sluice/core"
import type { FastifyRequest } from "fastify"
import { openDecisionClient } from "./decision-client.ts"
import { createGateway, type WhenGone } from "./gateway.ts"

// Runs a gateway in front of UPSTREAM, with the rules of service 1 of the decision service at DECISIONS. WHEN_GONE
// sets the gateway's behavior while the service does not respond: open, closed, or local (its own limiter).

const port = Number(process.env.PORT || 8000)
const upstream = process.env.UPSTREAM ?? "http://127.0.0.1:3000"
const decisions = openDecisionClient(process.env.DECISIONS ?? "127.0.0.1:50051", 100, console.error)

await createGateway({ upstream, serviceId: 1, decisions, whenGone: whenGone() }).listen({ port })
console.log(`The gateway listens on http://localhost:${port} and forwards to ${upstream}`)

function whenGone(): WhenGone {
  const choice = process.env.WHEN_GONE ?? "local"
  if (choice === "open" || choice === "closed") return choice
  return createLimiter<FastifyRequest>({
    limit: 100,
    window: "1 minute",
    field: "user_id",
    fields: { user_id: ({ ip }) => ip },
  })
}
