import type { Answer } from "./ask.ts"
import type { Paint } from "./paint.ts"

const RATE_LIMIT = /^(ratelimit|retry-after)/i

/** Returns the complete response that a client receives, with its JSON body on several lines. */
export function refusedResponse({ statusLine, headers, body }: Answer, paint: Paint): string {
  return [
    paint("bad", statusLine),
    ...headers.map(([name, value]) =>
      RATE_LIMIT.test(name) ? paint("told", `${name}: ${value}`) : `${name}: ${value}`,
    ),
    "",
    pretty(body),
  ].join("\n")
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), undefined, 2)
  } catch {
    return body
  }
}
