import type { Context, Middleware } from "koa"
import type { Response } from "../../../contracts/adapter/ask.ts"
import type { Pair } from "../pairs.ts"
import { as, thenRefused, twice } from "../requests.ts"
import { after, before } from "./app.ts"

const ratelimitNames = ({ headers }: Response): string[] =>
  Object.keys(headers).filter((name) => name.includes("ratelimit"))
const answer = ({ status, body }: Response): unknown => [status, body]

/** Throws an error for a refused request. */
const thrown: Middleware = async (ctx, next) => {
  await next()
  if (ctx.state.rateLimit?.allowed === false) ctx.throw(429, "slow down")
}
/** Answers an error as an app's own handler may do. */
const handled: Middleware = async (ctx, next) => {
  try {
    await next()
  } catch (error) {
    ctx.status = (error as { status: number }).status
    ctx.body = `handled: ${(error as Error).message}`
  }
}

/** Returns a middleware for /limited that responds with the limited clients so far. */
function tells(limited: readonly string[]): Middleware {
  return async (ctx, next) => {
    if (ctx.path === "/limited") ctx.body = limited.join(" ")
    else await next()
  }
}

/** Each option of koa-ratelimit that has a counterpart and needs no Redis, for both limiters. */
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
    before: before({ id: (ctx) => (ctx.path === "/health" ? false : ctx.get("x-user") || "nobody") }),
    after: after({
      field: "user",
      fields: { user: (ctx) => ctx.get("x-user") },
      onMissing: "shared",
      skip: (ctx) => ctx.path === "/health",
    }),
    steps: ["/health", "/health", as("X-User", "7"), as("X-User", "8"), as("X-User", "7"), ...twice],
    expected: [200, 200, 200, 200, 429, ...thenRefused],
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
  remaining: {
    before: before({ max: 100, headers: { remaining: "Rate-Limit-Remaining" } }),
    after: after({
      limit: 100,
      headers: { dialect: "legacy", names: { remaining: "Rate-Limit-Remaining" } },
    }),
    steps: ["/"],
    told: ({ headers }) => headers["rate-limit-remaining"],
    expected: ["99"],
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
    after: after({
      deny: ["192.0.2.66"],
      onRejected(ctx: Context, rejection, { refusal }) {
        if (refusal !== "denied") return rejection
        ctx.status = 403
        ctx.body = "Forbidden"
        return false
      },
    }),
    steps: [as("X-Forwarded-For", "192.0.2.66"), as("X-Forwarded-For", "192.0.2.7")],
    told: answer,
    expected: [
      [403, "Forbidden"],
      [200, "ok"],
    ],
  },
  onLimited: {
    before() {
      const limited: string[] = []
      return before({ onLimited: (ctx) => void limited.push(ctx.path) }, tells(limited))(undefined as never)
    },
    after(clock) {
      const limited: string[] = []
      return after({ onRejected: (ctx) => void limited.push(ctx.path) }, tells(limited))(clock)
    },
    steps: ["/a", "/b", "/limited"],
    told: ({ status, body }) => (status === 200 ? body : ""),
    expected: ["ok", "", "/b"],
  },
  throw: {
    before: before({ throw: true, errorMessage: "slow down" }, handled),
    after: after({}, handled, thrown),
    steps: twice,
    told: answer,
    expected: [
      [200, "ok"],
      [429, "handled: slow down"],
    ],
  },
}
