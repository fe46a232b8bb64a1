import type { Decision } from "@sluice/core"
import { contextOf, fromProxies, type Limited, rateLimit } from "@sluice/fetch"
import { rateLimit as onHono } from "@sluice/fetch/hono"
import { rateLimit as onSvelteKit } from "@sluice/fetch/sveltekit"
import { staticRules } from "@sluice/rules"
import { Hono } from "hono"

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

const onContext = onHono({
  ...{ limit: 100, window: "1 minute", field: "user", onMissing: "ip" },
  fields: { user: (c) => c.req.header("x-user") },
  onRejected: (c, { status }) => c.text("slow down", status as 429),
})
new Hono()
  .use(onContext)
  .get("/", (c) => c.text(`${c.var.rateLimit?.remaining} ${onContext.limiter.status.waiting}`))
// @ts-expect-error a misspelled option is not valid
onHono({ limit: 100, windw: "1 minute" })

/** A hook of an app, whose event has more members than the limiter reads. */
type Hook = (input: {
  event: Parameters<typeof handleAll>[0]["event"] & {
    readonly cookies: { get(name: string): string | undefined }
  }
  resolve(event: object, options?: object): Promise<Response>
}) => Response | Promise<Response>
const handleAll = onSvelteKit({ limit: 100, window: "1 minute" })
export const hooks: Hook[] = [
  handleAll,
  onSvelteKit({
    ...{ limit: 100, window: "1 minute", field: "user", onMissing: "ip" },
    fields: { user: (event) => event.cookies.get("user") },
  }),
  async ({ event, resolve }) => {
    const locals: App.Locals = event.locals
    const decided: Decision | undefined = locals.rateLimit
    return decided?.allowed ? resolve(event) : new Response()
  },
]
