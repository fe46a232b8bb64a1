import type { Middleware } from "koa"
import type { Response } from "../../../contracts/adapter/ask.ts"
import type { Pair } from "../pairs.ts"
import { as, thenRefused, twice } from "../requests.ts"
import { after, before } from "./app.ts"

const ratelimitNames = ({ headers }: Response): string[] =>
  Object.keys(headers).filter((name) => name.includes("ratelimit"))
const answer = ({ status, body }: Response): unknown => [status, body]

/** Responds to an error as an app's own handler might. */
const handled: Middleware = async (ctx, next) => {
  try {
    await next()
  } catch (error) {
    ctx.status = (error as { status: number }).status
    ctx.body = `handled: ${(error as Error).message}`
  }
}

/** Each option of koa-ratelimit that has a counterpart and needs no Redis, as a pair of apps with both limiters. */
export const OPTIONS: Readonly<Record<string, Pair>> = {
  duration: {
    before: before({ duration: 60_000 }),
    after: after({ window: 60_000 }),
    steps: [...twice, 59_999, "/", 2, "/"],
    expected: [...thenRefused, 429, 200],
  },
  max: {
    before: before({ max: 2 }),
    after: after({ limit: 2 }),
    steps: ["/", ...twice],
    expected: [200, ...thenRefused],
  },
  id: {
    before: before({ id: (ctx) => ctx.get("x-user") || "nobody" }),
    after: after({ field: "user", fields: { user: (ctx) => ctx.get("x-user") }, onMissing: "shared" }),
    steps: [as("X-User", "7"), as("X-User", "8"), as("X-User", "7"), ...twice],
    expected: [200, 200, 429, ...thenRefused],
  },
  "id, which returns false": {
    before: before({ id: (ctx) => ctx.path !== "/health" && ctx.ip }),
    after: after({ skip: (ctx) => ctx.path === "/health" }),
    steps: ["/health", "/health", ...twice],
    expected: [200, 200, ...thenRefused],
  },
  headers: {
    before: before({ max: 100 }),
    after: after({ limit: 100, headers: "legacy" }),
    steps: ["/"],
    told: ({ headers }) => [
      headers["x-ratelimit-limit"],
      headers["x-ratelimit-remaining"],
      Number(headers["x-ratelimit-reset"]) > 1_704_067_200,
    ],
    expected: [["100", "99", true]],
  },
  // This pair also covers the other two names, `reset` and `total`.
  remaining: {
    before: before({ headers: { remaining: "Quota-Remaining", reset: "Quota-Reset", total: "Quota" } }),
    after: after({ headers: { dialect: "legacy", prefix: "Quota", names: { limit: "Quota" } } }),
    steps: ["/"],
    told: ({ headers }) => [
      headers["quota-remaining"],
      Number(headers["quota-reset"]) > 1_704_067_200,
      headers.quota,
    ],
    expected: [["0", true, "1"]],
  },
  disableHeader: {
    before: before({ disableHeader: true }),
    after: after({ headers: false }),
    steps: twice,
    told: ratelimitNames,
    expected: [[], []],
  },
  errorMessage: {
    before: before({ errorMessage: "slow down" }),
    after: after({ rejection: { body: "slow down" } }),
    steps: twice,
    told: answer,
    expected: [
      [200, "ok"],
      [429, "slow down"],
    ],
  },
  status: {
    before: before({ status: 503 }),
    after: after({ rejection: { status: 503 } }),
    steps: twice,
    expected: [200, 503],
  },
  whitelist: {
    before: before({ whitelist: (ctx) => ctx.get("x-internal") === "yes" }),
    after: after({ skip: (ctx) => ctx.get("x-internal") === "yes" }),
    steps: [as("X-Internal", "yes"), as("X-Internal", "yes"), ...twice],
    expected: [200, 200, ...thenRefused],
  },
  blacklist: {
    before: before({ blacklist: (ctx) => ctx.ip === "192.0.2.66" }),
    after: after({}, (ctx, next) => (ctx.ip === "192.0.2.66" ? ctx.throw(403, "Forbidden") : next())),
    steps: [as("X-Forwarded-For", "192.0.2.66"), as("X-Forwarded-For", "192.0.2.7")],
    told: answer,
    expected: [
      [403, "Forbidden"],
      [200, "ok"],
    ],
  },
  onLimited: {
    before: before({ onLimited: (ctx) => ctx.set("X-Limited", ctx.path) }),
    after: after({ onRejected: (ctx) => ctx.set("X-Limited", ctx.path) }),
    steps: ["/a", "/b"],
    told: ({ status, headers }) => [status, headers["x-limited"]],
    expected: [
      [200, undefined],
      [429, "/b"],
    ],
  },
  throw: {
    before: before({ throw: true, errorMessage: "slow down" }, handled),
    after: after({ throwOnRefusal: true }, handled),
    steps: twice,
    told: ({ status, body }) => [status, body.slice(0, 8)],
    expected: [
      [200, "ok"],
      [429, "handled:"],
    ],
  },
}
