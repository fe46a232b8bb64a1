/** A search that users type, and the pages of which one must be the first result. */
export interface Search {
  readonly words: string
  readonly pages: readonly string[]
  /** The page may also be the second, or third: the number of pages to look at. */
  readonly among?: number
}

/** Searches that must lead to the right page. A new feature adds two. */
export const SEARCHES: readonly Search[] = [
  { words: "nginx", pages: ["/production/proxies", "/service/gateways"] },
  { words: "cloudflare real ip", pages: ["/production/proxies"] },
  { words: "all users share one limit", pages: ["/production/proxies"] },
  { words: "limit login attempts", pages: ["/protect/login"] },
  { words: "brute force", pages: ["/protect/login"] },
  { words: "limit per user", pages: ["/rules/matching", "/protect/plans"] },
  { words: "free and pro plan", pages: ["/protect/plans"] },
  { words: "change a limit without deploy", pages: ["/rules/files", "/protect/plans"] },
  { words: "daily quota", pages: ["/rules/algorithms"] },
  { words: "sliding window vs token bucket", pages: ["/rules/algorithms"] },
  { words: "what limit should I set", pages: ["/rules/limits"] },
  { words: "skip health check", pages: ["/rules/matching", "/production/checklist"] },
  { words: "url wildcard", pages: ["/rules/paths"] },
  { words: "method override", pages: ["/rules/paths"] },
  { words: "replay options", pages: ["/reference/replay"] },
  { words: "--max-refused", pages: ["/reference/replay"] },
  { words: "rate-limit-redis", pages: ["/migrate/express-rate-limit-store"] },
  { words: "SluiceStore", pages: ["/migrate/express-rate-limit-store"] },
  { words: "BurstyRateLimiter", pages: ["/migrate/rate-limiter-flexible-names"] },
  { words: "rate-limiter-flexible options", pages: ["/migrate/rate-limiter-flexible-names"] },
  { words: "Retry-After header", pages: ["/rules/responses"] },
  { words: "custom error message", pages: ["/rules/responses"] },
  { words: "queue requests instead of 429", pages: ["/rules/waiting", "/rules/throttling"] },
  { words: "redis down", pages: ["/production/redis-fails"] },
  { words: "redis cluster", pages: ["/production/redis"] },
  { words: "unblock a user", pages: ["/production/locked-out"] },
  { words: "grafana dashboard", pages: ["/production/metrics"] },
  { words: "multiple regions", pages: ["/scale/data-centers"] },
  { words: "deploy on kubernetes", pages: ["/service/deploy"] },
  { words: "auth_request", pages: ["/service/gateways"] },
  { words: "429 from another api", pages: ["/client/calling"] },
  { words: "axios", pages: ["/client/sdks"] },
  { words: "openai sdk rate limit", pages: ["/client/sdks"] },
  { words: "SLUICE_PACE_WAIT_TOO_LONG", pages: ["/client/errors"] },
  { words: "paced fetch events", pages: ["/client/errors"] },
  { words: "x-ratelimit-reset epoch", pages: ["/client/headers"] },
  { words: "parse rate limit headers", pages: ["/client/headers"] },
  { words: "windowMs", pages: ["/migrate/express-rate-limit"] },
  { words: "SLUICE_DEGRADED", pages: ["/errors/sluice_degraded"] },
  { words: "how does it work", pages: ["/start/how-it-works"] },
  { words: "architecture overview", pages: ["/start/how-it-works"] },
  { words: "express middleware order", pages: ["/start/express"] },
  { words: "express error handler", pages: ["/start/express"], among: 3 },
  { words: "koa", pages: ["/start/koa", "/migrate/koa-ratelimit"] },
  { words: "ctx.state.rateLimit", pages: ["/start/koa"], among: 3 },
]
