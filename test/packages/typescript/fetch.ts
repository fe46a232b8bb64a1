import type { Decision } from "@sluice/core"
import { contextOf, fromProxies, type Limited, rateLimit } from "@sluice/fetch"
import { staticRules } from "@sluice/rules"

/** The second argument that an app's own server passes with a request. */
interface Call {
  readonly peer: string
  readonly user?: { readonly id: string }
}

const limit = rateLimit<Call>({
  rules: staticRules([{ name: "users", field: "user", onMissing: "ip", limit: 100, window: "1 minute" }]),
  fields: { user: (request) => contextOf(request)?.user?.id },
  clientAddress: (_request, { peer }) => peer,
  onRejected: (_request, { status }, { retryAfterMs }, { peer }) =>
    Response.json({ peer, wait: retryAfterMs }, { status }),
})

export async function handle(request: Request, call: Call): Promise<Response> {
  const limited: Limited = await limit(request, call)
  if (limited.response) return limited.response
  const decision: Decision | undefined = limit.limiter.decisionOn(request)
  return limited.withHeaders(new Response(String(decision?.remaining)))
}

export async function ignoring(request: Request, call: Call): Promise<Response> {
  const limited = await limit(request, call)
  // @ts-expect-error a refused request has no such function
  return limited.withHeaders(new Response("ok"))
}

export const wrapped: (request: Request, call: Call) => Promise<Response> = limit.wrap(
  () => new Response("ok"),
)

const proxied = rateLimit({ limit: 100, window: "1 minute", clientAddress: fromProxies, trustedProxies: 1 })
export const GET: (request: Request) => Promise<Limited> = (request) => proxied(request)

// @ts-expect-error the context is needed for the address
limit(new Request("http://shop.example"))
// @ts-expect-error the source of the address is required
rateLimit({ limit: 100, window: "1 minute" })
// @ts-expect-error a misspelled option is not valid
rateLimit({ limit: 100, windw: "1 minute", clientAddress: fromProxies })
// @ts-expect-error an address is not read from a promise
rateLimit({ limit: 100, window: "1 minute", clientAddress: async () => "192.0.2.1" })
