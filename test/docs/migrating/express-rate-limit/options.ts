import type { GuardOptions } from "@sluice/core/adapters"
import { rateLimit as sluice } from "@sluice/express"
import type { Request, RequestHandler, Response } from "express"
import { rateLimit as peer } from "express-rate-limit"
import { parseList } from "structured-headers"
import type { Response as Answer } from "../../../contracts/adapter/ask.ts"
import type { Pair } from "../pairs.ts"
import { as, thenRefused, twice } from "../requests.ts"
import { appOf } from "./app.ts"

type Options = GuardOptions<Request, Response>
const before =
  (options: Parameters<typeof peer>[0]): Pair["before"] =>
  () =>
    appOf(peer({ windowMs: 60_000, limit: 1, ...options }))
const after =
  (options: Partial<Options>): Pair["after"] =>
  (clock) =>
    appOf(sluice({ limit: 1, window: "1 minute", trustedProxies: 1, clock, ...options } as Options))

/** Returns the quota and the remaining units from the draft's header fields. */
const members = ({ headers }: Answer): unknown => {
  const [policy] = parseList(headers["ratelimit-policy"] ?? "")
  const [rest] = parseList(headers.ratelimit ?? "")
  return [policy?.[0], policy?.[1].get("q"), policy?.[1].get("w"), rest?.[0], rest?.[1].get("r")]
}

/** Returns a middleware that sets X-Left to the remaining units, which it reads from a property of the request. */
const tells =
  (property: "quota" | "rateLimit"): RequestHandler =>
  (req, res, next) => {
    res.set("X-Left", String((req as { quota?: { remaining: number } } & Request)[property]?.remaining))
    next()
  }

/** Each option of express-rate-limit that has a counterpart, as a pair of apps with both limiters. */
export const OPTIONS: Readonly<Record<string, Pair>> = {
  windowMs: {
    before: before({ windowMs: 60_000 }),
    after: after({ window: 60_000 }),
    steps: [...twice, 59_999, "/", 2, "/"],
    expected: [...thenRefused, 429, 200],
  },
  limit: {
    before: before({ limit: (req) => (req.get("x-plan") === "pro" ? 2 : 1) }),
    after: after({ limit: (req) => (req.get("x-plan") === "pro" ? 2 : 1) }),
    steps: ["/", as("X-Plan", "pro"), "/"],
    expected: [200, 200, 429],
  },
  message: {
    before: before({ message: { error: "slow down" } }),
    after: after({ rejection: { body: { error: "slow down" } } }),
    steps: twice,
    told: ({ status, body }) => [status, body],
    expected: [
      [200, "ok"],
      [429, '{"error":"slow down"}'],
    ],
  },
  statusCode: {
    before: before({ statusCode: 503 }),
    after: after({ rejection: { status: 503 } }),
    steps: twice,
    expected: [200, 503],
  },
  legacyHeaders: {
    before: before({ legacyHeaders: true }),
    after: after({ headers: "legacy" }),
    steps: twice,
    told: ({ headers }) => [
      headers["x-ratelimit-limit"],
      headers["x-ratelimit-remaining"],
      Number(headers["x-ratelimit-reset"]) > 1_704_067_200,
    ],
    expected: [
      ["1", "0", true],
      ["1", "0", true],
    ],
  },
  standardHeaders: {
    before: before({ standardHeaders: "draft-6", limit: 100 }),
    after: after({ headers: "triple", limit: 100 }),
    steps: ["/"],
    told: ({ headers }) => [
      headers["ratelimit-limit"],
      headers["ratelimit-remaining"],
      headers["ratelimit-policy"],
    ],
    expected: [["100", "99", "100;w=60"]],
  },
  "standardHeaders, beside the legacy ones": {
    before: before({ standardHeaders: true, limit: 100 }),
    after: after({ headers: ["triple", "legacy"], limit: 100 }),
    steps: ["/"],
    told: ({ headers }) => [headers["ratelimit-remaining"], headers["x-ratelimit-remaining"]],
    expected: [["99", "99"]],
  },
  "standardHeaders, of draft 8": {
    before: before({ standardHeaders: "draft-8", limit: 100, identifier: "ip-1m" }),
    after: after({ headers: ["draft-11", "legacy"], limit: 100 }),
    steps: ["/"],
    told: (response) => [members(response), response.headers["x-ratelimit-remaining"]],
    expected: [[["ip-1m", 100, 60, "ip-1m", 99], "99"]],
  },
  identifier: {
    before: before({ identifier: "api", standardHeaders: "draft-8", limit: 100 }),
    after: after({ name: "api", limit: 100 }),
    steps: ["/"],
    told: members,
    expected: [["api", 100, 60, "api", 99]],
  },
  retryAfter: {
    before: before({ retryAfter: 120 }),
    after: after({
      onRejected: (_req, it) => ({ ...it, headers: [...it.headers, ["Retry-After", "120"]] }),
    }),
    steps: twice,
    told: ({ status, headers }) => [status, headers["retry-after"]],
    expected: [
      [200, undefined],
      [429, "120"],
    ],
  },
  skipFailedRequests: {
    before: before({ skipFailedRequests: true }),
    after: after({ refundWhen: (_req, status) => status >= 400 }),
    steps: ["/fail", "/missing", ...twice],
    expected: [500, 404, ...thenRefused],
  },
  skipSuccessfulRequests: {
    before: before({ skipSuccessfulRequests: true }),
    after: after({ refundWhen: (_req, status) => status < 400 }),
    steps: ["/", "/", "/fail", "/fail", "/"],
    expected: [200, 200, 500, 429, 429],
  },
  requestWasSuccessful: {
    before: before({
      skipSuccessfulRequests: true,
      requestWasSuccessful: (_req, res) => res.statusCode === 404,
    }),
    after: after({ refundWhen: (_req, status) => status === 404 }),
    steps: ["/missing", "/missing", ...twice],
    expected: [404, 404, ...thenRefused],
  },
  keyGenerator: {
    before: before({ keyGenerator: (req) => req.get("x-user") ?? "nobody" }),
    after: after({ field: "user", fields: { user: (req) => req.get("x-user") }, onMissing: "shared" }),
    steps: [as("X-User", "7"), as("X-User", "8"), as("X-User", "7"), ...twice],
    expected: [200, 200, 429, ...thenRefused],
  },
  ipv6Subnet: {
    before: before({ ipv6Subnet: 48 }),
    after: after({ ipv6Prefix: 48 }),
    steps: ["2001:db8:1:2::3", "2001:db8:1:3::4", "2001:db8:2::5"].map((ip) => as("X-Forwarded-For", ip)),
    expected: [200, 429, 200],
  },
  handler: {
    before: before({ handler: (req, res) => void res.status(429).send(`${req.path} has to wait`) }),
    after: after({ rejection: { body: ({ path }: Request) => `${path} has to wait` } }),
    steps: ["/a", "/a"],
    told: ({ status, body }) => [status, body],
    expected: [
      [200, "ok"],
      [429, "/a has to wait"],
    ],
  },
  "handler, which answers by itself": {
    before: before({ handler: (_req, res) => res.redirect("/slow") }),
    after: after({
      onRejected(_req, _rejection, _decision, res) {
        res.redirect("/slow")
        return false
      },
    }),
    steps: twice,
    told: ({ status, headers }) => [status, headers.location],
    expected: [
      [200, undefined],
      [302, "/slow"],
    ],
  },
  skip: {
    before: before({ skip: (req) => req.path === "/health" }),
    after: after({ skip: (req) => req.path === "/health" }),
    steps: ["/health", "/health", ...twice],
    expected: [200, 200, ...thenRefused],
  },
  max: {
    before: () => appOf(peer({ max: 2 })),
    after: after({ limit: 2 }),
    steps: ["/", ...twice],
    expected: [200, ...thenRefused],
  },
  headers: {
    before: before({ headers: false }),
    after: after({ headers: false }),
    steps: ["/"],
    told: ({ headers }) => Object.keys(headers).filter((name) => name.includes("ratelimit")),
    expected: [[]],
  },
  requestPropertyName: {
    before: () => appOf(peer({ limit: 3, requestPropertyName: "quota" }), tells("quota")),
    after: (clock) => appOf(sluice({ limit: 3, window: "1 minute", clock }), tells("rateLimit")),
    steps: ["/"],
    told: ({ headers }) => headers["x-left"],
    expected: ["2"],
  },
}
