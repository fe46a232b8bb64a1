import { memoryStore } from "@sluice/core"
import type { FastifyRequest } from "fastify"
import type { Response } from "../../../contracts/adapter/ask.ts"
import type { Pair } from "../pairs.ts"
import { as, thenRefused, times, twice } from "../requests.ts"
import { after, before, type More, registered } from "./app.ts"

const ratelimitNames = ({ headers }: Response): string[] =>
  Object.keys(headers).filter((name) => name.includes("ratelimit"))
const isPro = (plan: unknown): number => (plan === "pro" ? 2 : 1)
const byUser = { path: "/", method: "POST", headers: { "Content-Type": "application/json" } }
/** Adds a route with its own limit. */
const own =
  (limit: object): More =>
  (app) =>
    void app.get("/own", { config: { rateLimit: limit as never } }, async () => "ok")
const postedUser = ({ body }: FastifyRequest): string => (body as { user: string }).user
const posted: More = (app) => void app.post("/", async () => "ok")

/** Each option of @fastify/rate-limit that has a counterpart and needs no Redis, for both limiters. */
export const OPTIONS: Readonly<Record<string, Pair>> = {
  max: {
    before: before({ max: (req) => isPro(req.headers["x-plan"]) }),
    after: after({ limit: (req) => isPro(req.headers["x-plan"]) }),
    steps: ["/", as("X-Plan", "pro"), "/"],
    expected: [200, 200, 429],
  },
  timeWindow: {
    before: before({ timeWindow: "2 minutes" }),
    after: after({ window: "2 minutes" }),
    steps: [...twice, 119_999, "/", 2, "/"],
    expected: [...thenRefused, 429, 200],
  },
  global: {
    before: before({ global: false }, own({ max: 1, timeWindow: "1 hour" })),
    after: (clock) => registered({ clock }, own({ limit: 1, window: "1 hour" })),
    steps: [...twice, "/own", "/own"],
    expected: [200, 200, ...thenRefused],
  },
  cache: {
    before: before({ cache: 10 }),
    after: (clock) => after({ store: memoryStore({ maxKeys: 10, clock }) })(clock),
    steps: twice,
    expected: thenRefused,
  },
  allowList: {
    before: before({ allowList: ["127.0.0.1"] }),
    after: after({ allow: ["127.0.0.1"] }),
    steps: [...twice, "/"],
    expected: [200, 200, 200],
  },
  "allowList, a function": {
    before: before({ allowList: (req) => req.headers["x-internal"] === "yes" }),
    after: after({ skip: (req) => req.headers["x-internal"] === "yes" }),
    steps: [as("X-Internal", "yes"), as("X-Internal", "yes"), ...twice],
    expected: [200, 200, ...thenRefused],
  },
  keyGenerator: {
    before: before({ keyGenerator: (req) => String(req.headers["x-user"]) }),
    after: after({ field: "user", fields: { user: async (req) => String(req.headers["x-user"]) } }),
    steps: [as("X-User", "7"), as("X-User", "8"), as("X-User", "7"), ...twice],
    expected: [200, 200, 429, ...thenRefused],
  },
  ipv6Subnet: {
    before: before({ ipv6Subnet: 48 }, undefined, { trustProxy: ["127.0.0.1"] }),
    after: after({ ipv6Prefix: 48, trustedProxies: 1 }),
    steps: ["2001:db8:1:2::3", "2001:db8:1:3::4", "2001:db8:2::5"].map((ip) => as("X-Forwarded-For", ip)),
    expected: [200, 429, 200],
  },
  hook: {
    before: before({ hook: "preHandler", keyGenerator: postedUser }, posted),
    after: after({ hook: "preHandler", field: "body:user" }, posted),
    steps: ["7", "8", "7"].map((user) => ({ ...byUser, body: JSON.stringify({ user }) })),
    expected: [200, 200, 429],
  },
  ban: {
    before: before({ ban: 2 }),
    after: after({
      penalty: { refusals: 3, for: "1 minute" },
      onRejected: (_request, rejection, { refusal }) =>
        refusal === "penalty" ? { ...rejection, status: 403 } : rejection,
    }),
    steps: times(5, "/"),
    expected: [200, 429, 429, 403, 403],
  },
  continueExceeding: {
    before: before({ max: 5, continueExceeding: true }),
    after: after({ limit: 5, countRejected: true }),
    steps: [...times(40, ["/", 2_000]).flat(), 120_000, "/"],
    expected: [...times(5, 200), ...times(35, 429), 200],
  },
  errorResponseBuilder: {
    before: before({ errorResponseBuilder: () => ({ statusCode: 429, error: "slow down" }) }),
    after: after({ rejection: { body: { statusCode: 429, error: "slow down" } } }),
    steps: twice,
    told: ({ status, body }) => [status, body],
    expected: [
      [200, "ok"],
      [429, '{"statusCode":429,"error":"slow down"}'],
    ],
  },
  enableDraftSpec: {
    before: before({ max: 100, enableDraftSpec: true }),
    after: after({ limit: 100, headers: "triple" }),
    steps: ["/"],
    told: ({ headers }) => [headers["ratelimit-limit"], headers["ratelimit-remaining"]],
    expected: [["100", "99"]],
  },
  addHeaders: {
    before: before({ addHeaders: { "x-ratelimit-reset": false } }),
    after: after({
      headers: "legacy",
      onRejected: (_request, _rejection, _decision, reply) => void reply.removeHeader("x-ratelimit-reset"),
    }),
    steps: twice,
    told: ratelimitNames,
    expected: [
      ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"],
      ["x-ratelimit-limit", "x-ratelimit-remaining"],
    ],
  },
  addHeadersOnExceeding: {
    before: before({
      addHeadersOnExceeding: {
        "x-ratelimit-limit": false,
        "x-ratelimit-remaining": false,
        "x-ratelimit-reset": false,
      },
    }),
    after: after({ headers: false }),
    steps: ["/"],
    told: ratelimitNames,
    expected: [[]],
  },
}
