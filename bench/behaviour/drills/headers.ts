import { stayInWindow } from "../../time.ts"
import { type Answer, askAtOnce, countAdmitted, isAdmitted, isRefused } from "../client.ts"
import type { Drill } from "../drill.ts"

const LIMIT = 5
const WINDOW_MS = 600_000

const FIELDS = [
  ...["RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
  ...["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"],
]

export const headers: Drill = {
  name: "headers",
  asks: `a client sends one request, then ${LIMIT + 2} more: which header fields are sent, and are they correct`,
  wants:
    "an admitted client gets the correct number of remaining requests; a refused one gets Retry-After in whole seconds, at least 1",
  async run(world) {
    const site = await world.start({ limits: [{ limit: LIMIT, windowMs: WINDOW_MS }] })
    await stayInWindow(WINDOW_MS, 5_000)
    const client = { from: "198.51.100.1" }
    const first = await site.ask(client)
    const rest = await askAtOnce(site, client, LIMIT + 2)
    const refusal = rest.find(isRefused)
    const left = remainingIn(first)
    const admittedLater = countAdmitted(rest)
    const hasRetryAfter = /^[1-9]\d*$/.test(refusal?.headers["retry-after"] ?? "")
    return {
      isGood: isAdmitted(first) && left !== undefined && left === admittedLater && hasRetryAfter,
      seen: [
        `200: ${fieldsOf(first).join(", ") || "none"}`,
        `429: ${refusal === undefined ? "never" : fieldsOf(refusal).join(", ") || "none"}`,
        left === undefined ? "no remaining count" : `told ${left} left, were ${admittedLater}`,
      ].join("; "),
      figures: {
        on200: fieldsOf(first),
        on429: refusal === undefined ? null : fieldsOf(refusal),
        left: left ?? null,
        admittedLater,
        retryAfter: refusal?.headers["retry-after"] ?? null,
      },
    }
  },
}

function fieldsOf({ headers: sent }: Answer): string[] {
  return FIELDS.filter((name) => sent[name.toLowerCase()] !== undefined)
}

/** Returns the remaining requests by the draft's current field, its older fields or the X- fields. */
function remainingIn({ headers: sent }: Answer): number | undefined {
  const draft = /;\s*r=(\d+)/.exec(String(sent.ratelimit ?? ""))?.[1]
  const told = draft ?? sent["ratelimit-remaining"] ?? sent["x-ratelimit-remaining"]
  return typeof told === "string" && /^\d+$/.test(told) ? Number(told) : undefined
}
