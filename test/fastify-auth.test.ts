import { setImmediate as nextTurn } from "node:timers/promises"
import auth from "@fastify/auth"
import jwt from "@fastify/jwt"
import { manualClock } from "@sluice/core/testing"
import { type RateLimitOptions, rateLimit } from "@sluice/fastify"
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify"
import fastify50 from "fastify50"
import { afterEach, describe, expect, it } from "vitest"
import { until } from "./servers/until.ts"

declare module "@fastify/jwt" {
  interface FastifyJWT {
    payload: { name: string }
    user: { name: string }
  }
}

const clock = manualClock()
const apps: FastifyInstance[] = []
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close()
})

const verify = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
  try {
    await request.jwtVerify()
  } catch {
    await reply.code(401).send("who are you?")
  }
}

/**
 * The newest and the oldest release of Fastify 5. The hooks that run before the handler depend on a private part of
 * Fastify.
 */
const CREATE = { newest: fastify, oldest: fastify50 as unknown as typeof fastify } as const
type Release = keyof typeof CREATE

async function appWithJwt(release: Release): Promise<FastifyInstance> {
  const app = CREATE[release]()
  apps.push(app)
  await app.register(jwt, { secret: "a secret" })
  await app.register(auth)
  return app
}

type AddLimiter = (app: FastifyInstance) => PromiseLike<unknown>
type Wire = (app: FastifyInstance, limit: AddLimiter) => Promise<void>

const handler = async (request: FastifyRequest) => request.user?.name ?? "nobody"

/** All places where an app can authenticate in a preHandler. */
const WIRINGS: Readonly<Record<string, Wire>> = {
  async "a hook of the route"(app, limit) {
    await limit(app)
    app.get("/me", { preHandler: verify }, handler)
  },
  async "one of several hooks of the route"(app, limit) {
    await limit(app)
    app.get("/me", { preHandler: [async () => undefined, verify] }, handler)
  },
  async "@fastify/auth on the route"(app, limit) {
    await limit(app)
    app.get("/me", { preHandler: app.auth([verify]) }, handler)
  },
  async "an app hook before the limiter"(app, limit) {
    app.addHook("preHandler", verify)
    await limit(app)
    app.get("/me", handler)
  },
  async "an app hook after the limiter"(app, limit) {
    await limit(app)
    app.addHook("preHandler", verify)
    app.get("/me", handler)
  },
  async "an app hook after the route"(app, limit) {
    await limit(app)
    app.get("/me", handler)
    app.addHook("preHandler", verify)
  },
  async "a hook of a nested plugin"(app, limit) {
    await limit(app)
    app.register(async (scope) => {
      scope.addHook("preHandler", app.auth([verify]))
      scope.register(async (inner) => inner.get("/me", handler))
    })
  },
  async "a hook in the limiter's nested plugin"(app, limit) {
    app.register(async (scope) => {
      await limit(scope)
      scope.get("/me", { preHandler: verify }, handler)
    })
  },
}

/** Places that the limiter's onRoute hook does not detect in time. */
const UNSEEN_WIRINGS: Readonly<Record<string, Wire>> = {
  async "a hook that a later plugin adds"(app, limit) {
    await limit(app)
    app.addHook("onRoute", (route) => {
      route.preHandler = [...[route.preHandler ?? []].flat(), verify]
    })
    app.get("/me", handler)
  },
  async "a hook of an earlier route"(app, limit) {
    void limit(app)
    app.get("/me", { preHandler: verify }, handler)
  },
  async "a hook of a route in an earlier plugin"(app, limit) {
    await app.register(async (scope) => scope.get("/me", { preHandler: verify }, handler))
    await limit(app)
  },
  async "a hook of the 404 handler"(app, limit) {
    await limit(app)
    app.setNotFoundHandler({ preHandler: verify }, (request, reply) =>
      reply.code(200).send(request.user.name),
    )
  },
  async "a hook of an earlier 404 handler"(app, limit) {
    app.setNotFoundHandler({ preHandler: verify }, (request, reply) =>
      reply.code(200).send(request.user.name),
    )
    await limit(app)
  },
  async "an app hook before a nested 404 page"(app, limit) {
    await limit(app)
    app.addHook("preHandler", verify)
    app.register(
      async (scope) => scope.setNotFoundHandler((request, reply) => reply.code(200).send(request.user.name)),
      { prefix: "/me" },
    )
  },
}

/** Returns the statuses of requests by these users; undefined stands for a client without a token. */
async function statuses(app: FastifyInstance, ...users: readonly (string | undefined)[]): Promise<number[]> {
  const all: number[] = []
  for (const name of users) {
    const headers = name === undefined ? {} : { authorization: `Bearer ${app.jwt.sign({ name })}` }
    all.push((await app.inject({ url: "/me", headers })).statusCode)
  }
  return all
}

const byUser = {
  clock,
  limit: 2,
  window: "1 minute",
  field: "user",
  fields: { user: (request: FastifyRequest) => request.user?.name },
} as const satisfies RateLimitOptions

const sluice =
  (options: RateLimitOptions): AddLimiter =>
  (app) =>
    app.register(rateLimit, options)

const CASES = Object.entries({ ...WIRINGS, ...UNSEEN_WIRINGS }).flatMap(([name, wire]) =>
  (["newest", "oldest"] as const).map((release) => ({ name, wire, release })),
)

describe.each(CASES)("with authentication in $name, on the $release release of Fastify 5,", (each) => {
  const { wire, release } = each
  const make = async (address: number, user: number) => {
    const app = await appWithJwt(release)
    await wire(
      app,
      sluice({
        clock,
        fields: byUser.fields,
        rules: [
          { name: "user", field: "user", limit: user, window: "1 minute", onMissing: "skip" },
          { name: "address", field: "ip", limit: address, window: "1 minute" },
        ],
      }),
    )
    return app
  }

  it("each user has a separate limit", async () => {
    const app = await make(100, 2)
    expect(await statuses(app, "alice", "alice", "alice", "bob")).toEqual([200, 200, 429, 200])
  })

  it("requests that authentication rejects with 401 count against the address", async () => {
    const app = await make(3, 100)
    expect(await statuses(app, undefined, undefined, undefined, undefined, "alice")).toEqual([
      401, 401, 401, 429, 429,
    ])
  })

  it("a request that the user's rule refuses counts against the address, because authentication has run", async () => {
    const app = await make(4, 1)
    expect(await statuses(app, "alice", "alice", "alice", "bob", "carol")).toEqual([200, 429, 429, 200, 429])
  })
})

describe("authentication runs at most as often as the address's limit allows", () => {
  const schema = { body: { type: "object", required: ["note"], properties: { note: { type: "string" } } } }

  /**
   * Starts an app that admits 5 requests from an address and 1 request of a user, and counts how often it
   * authenticates.
   */
  async function counting(user: object = {}) {
    let runs = 0
    const app = fastify()
    apps.push(app)
    await app.register(jwt, { secret: "a secret" })
    await app.register(auth)
    const users = { field: "user", limit: 1, window: "1 minute", onMissing: "skip", ...user } as const
    await app.register(rateLimit, {
      clock,
      fields: byUser.fields,
      rules: [
        { name: "address", field: "ip", limit: 5, window: "1 minute" },
        { name: "user", ...users },
      ],
    })
    const authenticate = app.auth([
      async (request: FastifyRequest) => {
        runs++
        await request.jwtVerify()
      },
    ])
    app.get("/me", { preHandler: authenticate }, handler)
    app.post("/notes", { preValidation: authenticate, schema }, handler)
    const headers = { authorization: `Bearer ${app.jwt.sign({ name: "alice" })}` }
    return { app, headers, runs: () => runs }
  }

  it("for a user that the user's rule refuses", async () => {
    const { app, headers, runs } = await counting()
    for (let i = 0; i < 12; i++) await app.inject({ url: "/me", headers })
    expect(runs()).toBe(5)
  })

  it("for a body that the route's schema rejects", async () => {
    const { app, headers, runs } = await counting()
    for (let i = 0; i < 12; i++) await app.inject({ method: "POST", url: "/notes", headers, payload: {} })
    expect(runs()).toBe(5)
  })

  it("for a client that hangs up while its requests wait in the queue of the user's rule", async () => {
    const { app, headers, runs } = await counting({
      throttle: { kind: "queue", maxWaiting: 100, maxWaitMs: 100_000 },
    })
    const url = new URL("/me", await app.listen({ port: 0, host: "127.0.0.1" }))
    for (let i = 0; i < 12; i++) {
      const before = runs()
      const leaving = new AbortController()
      const asked = fetch(url, { headers, signal: leaving.signal }).then(
        ({ status }) => status,
        () => "left",
      )
      // Only the first request is admitted, and the requests above the address's limit are refused.
      const isHeld = i > 0 && i < 5
      if (isHeld) await until("it is authenticated", () => runs() > before)
      await nextTurn()
      if (isHeld) leaving.abort()
      expect(await asked).toBe(isHeld ? "left" : i === 0 ? 200 : 429)
    }
    expect(runs()).toBe(5)
  })
})
